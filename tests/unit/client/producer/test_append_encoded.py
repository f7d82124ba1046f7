"""Batches that somebody else has filled travel like those of the producer's own."""

import pytest

from ottla.client.errors import ClientError, TopicUnknown
from ottla.client.producer.batch import EncodedRecords
from ottla.wire.batch import BATCH_HEADER_SIZE
from ottla.wire.compression import Codec, compress
from ottla.wire.errors import ErrorCode
from ottla.wire.record import Record, encode_records
from tests.unit.client.producer.parts import TOPIC, Bench, records_of


def encoded(*values: bytes, codec: Codec = Codec.NONE) -> EncodedRecords:
    records = [Record(number, 50 + number, None, value) for number, value in enumerate(values)]
    body, latest = encode_records(records, 0, 50)
    buffer = bytearray(BATCH_HEADER_SIZE) + (compress(codec, body) if codec else body)
    return EncodedRecords(buffer, len(values), 50, latest, codec)


def test_it_leaves_at_once_and_whole() -> None:
    bench = Bench(linger_ms=1000, compression_type="gzip")
    batch = bench.accumulator.append_encoded(TOPIC, 0, encoded(b"a", b"b", codec=Codec.LZ4))
    (left,) = bench.take()
    assert left is batch
    assert [(each.timestamp, each.value) for each in records_of(left)] == [(50, b"a"), (51, b"b")]
    assert bench.accumulator.buffer_pool.free == bench.accumulator.buffer_pool.total
    bench.handle_response(left, base_offset=9)
    assert (left.done, left.error, left.base_offset) == (True, None, 9)
    assert not len(bench.accumulator.incomplete)


def test_it_is_numbered_with_the_others() -> None:
    bench = Bench()
    bench.accumulator.append(TOPIC, b"before")
    bench.accumulator.append_encoded(TOPIC, 0, encoded(b"a", b"b"))
    bench.accumulator.append(TOPIC, b"after")
    bench.flush()
    found = []
    while batches := bench.take():
        found += [(batch.base_sequence, [each.value for each in records_of(batch)]) for batch in batches]
        bench.settle_well(*batches)
    assert found == [(0, [b"before"]), (1, [b"a", b"b"]), (3, [b"after"])]


def test_it_is_split_when_it_is_too_large() -> None:
    bench = Bench(batch_size=100)
    values = [b"%d" % number * 20 for number in range(10)]
    batch = bench.accumulator.append_encoded(TOPIC, 0, encoded(*values, codec=Codec.GZIP))
    (left,) = bench.take()
    bench.handle_response(left, ErrorCode.MESSAGE_TOO_LARGE)
    found = []
    while batches := bench.take():
        found += [each.value for part in batches for each in records_of(part)]
        bench.settle_well(*batches)
    assert found == values
    assert len(list(batch.final_parts())) > 1


def test_where_it_cannot_go() -> None:
    bench = Bench()
    with pytest.raises(TopicUnknown):
        bench.accumulator.append_encoded("elsewhere", 0, encoded(b"a"))
    with pytest.raises(TopicUnknown, match="no partition 1"):
        bench.accumulator.append_encoded(TOPIC, 1, encoded(b"a"))


def test_a_guard_has_a_say() -> None:
    bench = Bench()

    def closed() -> None:
        raise ClientError("closed")

    bench.accumulator.check_may_append = closed
    with pytest.raises(ClientError, match="closed"):
        bench.accumulator.append_encoded(TOPIC, 0, encoded(b"a"))
    assert not len(bench.accumulator.incomplete)
