"""Records read as columns are the records read one by one, whatever the bytes: `wire.record` is the model.

By numpy and, where it was built, by the compiled reader.
"""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.wire import columns as columns_module
from ottla.wire.batch import LOG_APPEND_TIME, Batch
from ottla.wire.columns import decode_columns, decode_headers
from ottla.wire.errors import ProtocolError
from ottla.wire.record import Headers, Record, decode_records, encode_records, zigzag

INT64 = 1 << 64

timestamps = st.integers(0, 1 << 50) | st.integers(1_000, 1_200)
payloads = st.none() | st.binary(max_size=200) | st.sampled_from([b"a" * 3_000, bytes(70_000)])
headers = st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=8)), max_size=3).map(tuple)
fields = st.tuples(timestamps, payloads, payloads, headers | st.just(()))


@st.composite
def record_lists(draw: st.DrawFn) -> list[Record]:
    """Records that differ, and among them stretches that do not, so that steps and rounds have something to do."""
    records: list[Record] = []
    offset = draw(st.integers(0, 1 << 40))
    for (timestamp, key, value, extra), times in draw(
        st.lists(st.tuples(fields, st.sampled_from([1, 1, 2, 40, 150])), min_size=1, max_size=6)
    ):
        if len(value or b"") + len(key or b"") > 10_000:
            times = 1
        for _ in range(times):
            records.append(Record(offset, timestamp, key, value, extra))
            offset += 1
        offset += draw(st.sampled_from([0, 0, 3_000]))
    return records


def header_of(
    body: bytes, count: int, base_offset: int, base_timestamp: int, append_time: int | None
) -> Batch:
    attributes, max_timestamp = (0, 0) if append_time is None else (LOG_APPEND_TIME, append_time)
    return Batch(
        base_offset, 49 + len(body), 0, 2, 0, attributes, count - 1, base_timestamp, max_timestamp, -1, -1, -1, count
    )  # fmt: skip


def by_columns(batches: Sequence[Batch], bodies: Sequence[bytes]) -> list[Record] | None:
    found = _by_columns(batches, bodies)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns_module, "_records", None)
        assert _by_columns(batches, bodies) == found
    return found


def _by_columns(batches: Sequence[Batch], bodies: Sequence[bytes]) -> list[Record] | None:
    try:
        columns = decode_columns(batches, bodies)
        found = decode_headers(columns)
    except ProtocolError:
        return None
    data = columns.data

    def piece(start: int, end: int, null: bool) -> bytes | None:
        return None if null else data[start:end]

    pairs = [
        (data[start:end].decode("utf-8", "surrogateescape"), piece(*value))
        for start, end, *value in zip(*(each.tolist() for each in found[1:]), strict=True)
    ]
    extras: list[Headers] = []
    for count in found.counts.tolist():
        extras.append(tuple(pairs[:count]))
        del pairs[:count]
    assert not pairs
    return [
        Record(offset, timestamp, piece(*key), piece(*value), extra)
        for offset, timestamp, key, value, extra in zip(
            columns.offsets.tolist(),
            columns.timestamps.tolist(),
            zip(*(each.tolist() for each in columns[3:6]), strict=True),
            zip(*(each.tolist() for each in columns[6:9]), strict=True),
            extras,
            strict=True,
        )
    ]


def by_model(batches: Sequence[Batch], bodies: Sequence[bytes]) -> list[Record] | None:
    records: list[Record] = []
    try:
        for batch, body in zip(batches, bodies, strict=True):
            append_time = batch.max_timestamp if batch.attributes & LOG_APPEND_TIME else None
            records += decode_records(
                body, batch.record_count, batch.base_offset, batch.base_timestamp, append_time
            )
    except ProtocolError:
        return None
    return [
        record._replace(offset=wrap(record.offset), timestamp=wrap(record.timestamp)) for record in records
    ]


def wrap(number: int) -> int:
    return (number + INT64 // 2) % INT64 - INT64 // 2


def encoded(records: list[Record], append_time: int | None) -> tuple[Batch, bytes]:
    base_offset, base_timestamp = records[0].offset, records[0].timestamp
    body, _ = encode_records(records, base_offset, base_timestamp)
    return header_of(body, len(records), base_offset, base_timestamp, append_time), body


lists = st.lists(st.tuples(record_lists(), st.none() | timestamps), min_size=1, max_size=4)


@settings(deadline=None)
@given(lists=lists)
def test_what_was_written_is_read(lists):
    batches, bodies = zip(*(encoded(*each) for each in lists), strict=True)
    expected = [
        record if append_time is None else record._replace(timestamp=append_time)
        for records, append_time in lists
        for record in records
    ]
    assert by_columns(batches, bodies) == by_model(batches, bodies) == expected


# A byte is put in the place of another, or put in, or taken out.
damages = st.lists(
    st.tuples(st.integers(0), st.integers(0, 255) | st.none(), st.booleans()), min_size=1, max_size=4
)


@settings(deadline=None)
@given(
    lists=lists,
    damages=damages,
    cut=st.integers(0, 20),
    extra=st.sampled_from([0, 0, 0, 1, -1, 1 << 30]),
    base=st.sampled_from([0, (1 << 63) - 1, -(1 << 63)]),
)
def test_damage_is_refused_by_both_or_read_alike(lists, damages, cut, extra, base):
    batches, bodies = zip(*(encoded(*each) for each in lists), strict=True)
    body = bytearray(bodies[0])
    for where, byte, more in damages:
        where %= len(body) + 1
        body[where : where + (not more)] = b"" if byte is None else bytes([byte])
    del body[len(body) - cut :]
    spoilt = header_of(body, max(0, batches[0].record_count + extra), base, base, None)
    batches, bodies = [spoilt, *batches[1:]], [bytes(body), *bodies[1:]]
    assert by_columns(batches, bodies) == by_model(batches, bodies)


@st.composite
def varints(draw: st.DrawFn, number: int, *, bytes_max: int = 5) -> bytes:
    """The number: mostly as it should be, at times longer than it need be or is allowed, at times a lie."""
    form = draw(st.integers(0, 60))
    if form == 0:
        number += draw(st.sampled_from([1, -1, 64, 1 << 31, 1 << 33]))
    elif form == 1:
        number = -number - 1  # the same bits, but for the sign
    plain = zigzag(number)
    if 1 < form < 6 and len(plain) < bytes_max:
        width = bytes_max if form < 4 else bytes_max + 1 if form == 4 else len(plain) + 1
        plain = plain[:-1] + bytes([plain[-1] | 0x80]) + b"\x80" * (width - len(plain) - 1) + b"\0"
    return plain


@st.composite
def payload(draw: st.DrawFn, *, null: bool = True) -> bytes:
    content = draw(
        st.sampled_from([None, b"", b"x", b"ab" * 30, b"ab" * 40] if null else [b"", b"n", b"name"])
    )
    if content is None:
        return draw(st.sampled_from([-1, -1, -2, -(1 << 31)]).map(zigzag))
    return draw(varints(len(content))) + content


@st.composite
def shaped(draw: st.DrawFn) -> bytes:
    """A record that is nearly right, or right."""
    pairs = draw(st.integers(0, 2) | st.just(0))
    parts = [
        b"\0",
        draw(varints(draw(st.sampled_from([0, 1, -1, 100, 1 << 40, -(1 << 63)])), bytes_max=10)),
        draw(varints(draw(st.sampled_from([0, 5, 70, 9_000, -1])))),
        draw(payload()),
        draw(payload()),
        draw(varints(pairs)),
    ]
    for _ in range(pairs):
        parts += (draw(payload(null=False)), draw(payload()))
    record = b"".join(parts)
    return draw(varints(len(record))) + record


@settings(deadline=None, max_examples=400)
@given(
    records=st.lists(st.tuples(shaped(), st.sampled_from([1, 1, 3, 40, 100])), max_size=3),
    more=st.sampled_from([0, 0, 0, 0, 1, -1]),
    base=st.sampled_from([0, 1_000, (1 << 63) - 1, -(1 << 63)]),
)
def test_what_is_nearly_right_is_refused_by_both_or_read_alike(records, more, base):
    body = b"".join(record * times for record, times in records)
    count = max(0, sum(times for _, times in records) + more)
    batch = header_of(body, count, base, base, None)
    assert by_columns([batch], [body]) == by_model([batch], [body])


@given(body=st.binary(max_size=60), count=st.integers(0, 8))
def test_noise(body, count):
    batch = header_of(body, count, 0, 0, None)
    assert by_columns([batch], [body]) == by_model([batch], [body])
