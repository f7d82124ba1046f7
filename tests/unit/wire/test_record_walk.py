"""The pass over records in C and its twin in Python give one verdict on every input: that of `decode_records`."""

import pytest

from ottla.wire.errors import ProtocolError
from ottla.wire.record import Record, decode_records, encode_records, zigzag
from ottla.wire.record_walk import BAD_RECORDS_MAX, INT64_MAX, INT64_MIN, Fault, PlainWalk, complaint, walk_of
from tests.faults.seeds import seeded

compiled = pytest.importorskip("ottla.wire._records", reason="it was not built: there was no C compiler")

TOLD = ("fault", "index", "max_time", "bad", "is_late", "found", "found_time", "found_delta")
BASE = 1_000


def verdict(cls, asked, pieces):
    walk = cls(*asked)
    more = [walk.feed(piece) for piece in pieces]
    return more, walk.end(), [getattr(walk, name) for name in TOLD]


def pieces_of(chance, body):
    cuts = sorted(chance.choices(range(len(body) + 1), k=chance.choice((0, 0, 1, 3, 40))))
    return [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]


def some_records(chance):
    sizes = (None, 0, 1, 62, 63, 64, 65, 8190)
    return [
        Record(
            number,
            BASE + chance.choice((5, -5, 1 << 40, number, -BASE - 1)),
            *(None if size is None else chance.randbytes(size) for size in chance.choices(sizes, k=2)),
            tuple(
                (chance.choice(("", "name", "ä")), chance.choice((None, b"", b"value")))
                for _ in range(chance.choice((0, 0, 0, 1, 3)))
            ),
        )
        for number in range(chance.choice((0, 1, 3, 40, 200)))
    ]


def is_read(body, count):
    """Whether the reader of records takes them, and in a row."""
    try:
        return [each.offset for each in decode_records(body, count, 0, BASE)] == list(range(count))
    except ProtocolError:
        return False


def test_c_and_python_and_the_reader_agree():
    chance = seeded(__file__)
    for _ in range(25):
        one_round(chance)


def one_round(chance):
    given = some_records(chance)
    body = encode_records(given, 0, BASE)[0] if given else b""
    inputs = [body]
    for place in chance.choices(range(len(body)), k=60) if body else ():
        changed = bytearray(body)
        changed[place] = chance.choice((0, 1, 2, 3, 0x7E, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        inputs += [bytes(changed), body[:place], body + body[place:]]
    inputs.append(chance.randbytes(chance.randrange(60)))
    for data in inputs:
        count = len(given) + chance.choice((0, 0, 0, 0, 1, -1))
        asked = (
            *(count, chance.choice((BASE, BASE, INT64_MAX, INT64_MIN)), chance.choice((None, None, 77, -1))),
            *(chance.random() < 0.8, chance.random() < 0.3),
            *chance.choice(((INT64_MIN, INT64_MAX), (BASE, BASE + 1000))),
            *chance.choice(((1, 0, 0), (BASE + 3, INT64_MAX, 1), (BASE + 5, BASE + 5, INT64_MIN))),
        )
        pieces = pieces_of(chance, data)
        assert verdict(compiled.Walk, asked, pieces) == verdict(PlainWalk, asked, pieces), f"{asked}"
        whole = walk_of(count, BASE, None, is_dense=True)
        whole.feed(data)
        assert (whole.end() == 0) == is_read(data, count), f"{data.hex()} as {count}"


def fault_of(body, count, **how):
    walk = walk_of(count, BASE, None, is_dense=True, **how)
    walk.feed(body)
    walk.end()
    return Fault(walk.fault)


def record(size=None, attributes=b"\0", time=0, offset=0, key=None, value=b"v", headers=b"\0"):
    def stretch(data):
        return b"\x01" if data is None else zigzag(len(data)) + data

    body = attributes + zigzag(time) + zigzag(offset) + stretch(key) + stretch(value) + headers
    return zigzag(len(body) if size is None else size) + body


@pytest.mark.parametrize(
    ("body", "count", "fault"),
    [
        (record(), 1, Fault.SOUND),
        (record() + record(offset=1), 2, Fault.SOUND),
        (b"", 0, Fault.SOUND),
        (b"", -1, Fault.RECORDS_MISSING),
        (b"", 1, Fault.RECORDS_MISSING),
        (b"\xff" * 40, 1, Fault.LONG_NUMBER),
        (b"\0", 1_000, Fault.RECORDS_MISSING),
        (record(), 1_000, Fault.RECORDS_MISSING),
        (record() + b"\0", 1, Fault.BYTES_LEFT),
        (record(), 0, Fault.BYTES_LEFT),
        (record() + record(), 2, Fault.BAD_OFFSET),
        (record(offset=-1), 1, Fault.BAD_OFFSET),
        (record(offset=0x7FFFFFFF), 1, Fault.BAD_OFFSET),
        (record(size=-2), 1, Fault.BAD_SIZE),
        (record(size=3), 1, Fault.BAD_FIELDS),
        (record(size=8) + b"\0", 1, Fault.BAD_FIELDS),
        (record(headers=b"\x01"), 1, Fault.BAD_HEADERS),
        (record(headers=zigzag(1 << 30)), 1, Fault.BAD_HEADERS),
        (record(headers=zigzag(1) + b"\x01\0"), 1, Fault.BAD_HEADERS),
        (record(headers=zigzag(1) + zigzag(1) + b"n" + b"\x01"), 1, Fault.SOUND),
        (record(headers=zigzag(1) + zigzag(9) + b"n" + b"\x01"), 1, Fault.BAD_FIELDS),
        (record(time=INT64_MAX), 1, Fault.SOUND),
    ],
)
def test_faults(body, count, fault):
    assert fault_of(body, count) is fault
    assert is_read(body, count) == (fault is Fault.SOUND)
    for at in range(len(body) + 1):  # however it comes
        walk = walk_of(count, BASE, None, is_dense=True)
        assert not walk.feed(body[:at]) or walk.feed(body[at:]) or walk.fault
        assert walk.end() == fault
    if fault:
        assert "record" in str(complaint(walk))


def test_timestamps_wrap_and_are_bounded():
    walk = walk_of(2, INT64_MAX, None, earliest=0, latest=INT64_MAX)
    walk.feed(record(time=1) + record(time=0, offset=1))
    assert (walk.end(), walk.bad, walk.is_late, walk.max_time) == (0, (0,), True, INT64_MAX)


def test_not_every_bad_record_is_named():
    walk = walk_of(1000, BASE, None, is_dense=True, is_keyed=True)
    walk.feed(b"".join(record(offset=number) for number in range(1000)))
    assert (walk.end(), walk.bad, walk.is_late) == (0, tuple(range(BAD_RECORDS_MAX)), False)
