"""Any records survive a batch of any codec, and any damage is refused without surprise."""

import contextlib
import zlib

from aiokafka.record.default_records import DefaultRecordBatch as AioBatch
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch

from ottla.wire.batch import Batch, build_batch, crc_ok, read_records, record_bytes, restamp_crc, scan
from ottla.wire.compression import Codec, decompress
from ottla.wire.errors import BrokerError, ProtocolError
from ottla.wire.record import Record, walk

timestamps = st.integers(0, 1 << 50)
payloads = st.none() | st.binary(max_size=200) | st.sampled_from([b"a" * 3_000, bytes(70_000)])
headers = st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=8)), max_size=3).map(tuple)
bodies = st.tuples(st.integers(1, 3_000), timestamps, payloads, payloads, headers)


@st.composite
def record_lists(draw: st.DrawFn) -> list[Record]:
    offset = draw(st.integers(0, 1 << 40))
    records = []
    for gap, timestamp, key, value, extra in draw(st.lists(bodies, min_size=1, max_size=12)):
        records.append(Record(offset, timestamp, key, value, extra))
        offset += gap
    return records


@given(records=record_lists(), codec=st.sampled_from(Codec), horizon=st.none() | timestamps)
def test_round_trip(records, codec, horizon):
    data = build_batch(records, base_offset=records[0].offset, codec=codec, delete_horizon_ms=horizon)
    assert read_records(data) == records
    assert crc_ok(data, 0, len(data))
    batch = Batch.parse(data)
    assert batch.last_offset == records[-1].offset
    assert batch.max_timestamp == max(record.timestamp for record in records)


@given(records=record_lists(), codec=st.sampled_from(Codec))
def test_other_clients_agree(records, codec):
    data = bytes(build_batch(records, base_offset=records[0].offset, codec=codec))
    for reader in (KafkaPythonBatch, AioBatch):
        theirs = [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in reader(data)]
        assert theirs == [tuple(record) for record in records]


@given(
    records=record_lists(),
    codec=st.sampled_from(Codec),
    damage=st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1, max_size=6),
    cut=st.integers(0, 40),
)
def test_damage_is_refused_or_harmless(records, codec, damage, cut):
    data = build_batch(records, base_offset=records[0].offset, codec=codec)
    for where, byte in damage:
        data[where % len(data)] = byte
    del data[len(data) - cut :]
    restamp_crc(data, 0, len(data)) if len(data) > 61 else None
    with contextlib.suppress(ProtocolError, BrokerError):
        for pos, batch in scan(data):
            body = record_bytes(data, pos, batch, 1 << 20)
            with contextlib.suppress(ProtocolError):
                list(walk(body, batch.record_count))
            found = read_records(data, pos, size_bytes_max=1 << 20)
            # Whatever passes the full reading passes the walk, and says the same.
            spans = [(span.offset_delta, span.key, span.has_value) for span in walk(body, batch.record_count)]
            assert spans == [(r.offset - batch.base_offset, r.key, r.value is not None) for r in found]


@given(codec=st.sampled_from(Codec), noise=st.binary(max_size=200))
def test_noise_is_refused_or_harmless(codec, noise):
    with contextlib.suppress(ProtocolError):
        assert len(decompress(codec, noise, 1 << 16)) <= 1 << 16


@given(records=record_lists(), codec=st.sampled_from(Codec), size_bytes_max=st.integers(0, 1 << 18))
def test_the_limit_holds(records, codec, size_bytes_max):
    data = build_batch(records, base_offset=records[0].offset, codec=codec)
    plain = build_batch(records, base_offset=records[0].offset)
    try:
        assert read_records(data, size_bytes_max=size_bytes_max) == records
        assert len(plain) - 61 <= size_bytes_max
    except ProtocolError:
        assert len(plain) - 61 > size_bytes_max


def test_crc_is_castagnoli_and_not_zlib():
    data = build_batch([Record(0, 0, None, b"x")])
    assert Batch.parse(data).crc != zlib.crc32(data[21:])
