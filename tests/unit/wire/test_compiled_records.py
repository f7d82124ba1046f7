"""R1, R2 of the compiled reader of records: it finds sound what `decode_records` reads, and makes the same of it."""

import random
import sys

import numpy as np
import pytest

from ottla.wire.errors import ProtocolError
from ottla.wire.record import Record, decode_records, encode_records, zigzag

compiled = pytest.importorskip("ottla.wire._records", reason="it was not built: there was no C compiler")


def records(chance: random.Random) -> list[Record]:
    sizes = (None, 0, 1, 62, 63, 64, 65, 8190, 8192)
    return [
        Record(
            number + chance.choice((0, 60, 9_000)),
            chance.choice((5, -5, 1 << 40, number)),
            *(None if size is None else chance.randbytes(size) for size in chance.choices(sizes, k=2)),
            tuple(
                (chance.choice(("", "name", "ä", "\udcff")), chance.choice((None, b"", b"value")))
                for _ in range(chance.choice((0, 0, 0, 1, 3, 70)))
            ),
        )
        for number in range(chance.choice((0, 1, 3, 40)))
    ]


def outcome(body: bytes, count: int) -> list[Record] | None:
    try:
        return decode_records(body, count, 100, 1_000)
    except ProtocolError:
        return None


def made(body: bytes, count: int) -> list[Record] | None:
    if compiled.sound(body, count, -(1 << 40)) < 0:
        return None
    found: list[Record] = []
    compiled.make(found, Record, (), (), body, 0, count, 100, 1_000, None)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_both_read_the_same(seed):
    chance = random.Random(seed)
    given = records(chance)
    body = encode_records(given, 100, 1_000)[0] if given else b""
    assert made(body, len(given)) == decode_records(body, len(given), 100, 1_000) == given
    for place in chance.choices(range(len(body)), k=300) if body else ():
        changed = bytearray(body)
        changed[place] = chance.choice((0, 1, 2, 3, 0x7E, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        for nonsense in (bytes(changed), body[:place], body + body[place:]):
            assert made(nonsense, len(given)) == outcome(nonsense, len(given)), f"seed {seed}, {place}"


def test_some_of_them():
    given = [Record(n, n, b"k", b"%d" % n, ()) for n in range(10)]
    body, _ = encode_records(given, 0, 0)
    assert compiled.sound(body, 10, 4) == 4
    found = [None]
    compiled.make(found, tuple, ("t",), (1, 2), body, 4, 2, 0, 0, 77)
    assert found == [None, ("t", 4, 77, b"k", b"4", (), 1, 2), ("t", 5, 77, b"k", b"5", (), 1, 2)]


def test_what_does_not_fit_64_bits():
    body, _ = encode_records([Record(3, 3, None, None, ())], 0, 0)
    found = []
    largest = (1 << 63) - 1
    compiled.make(found, Record, (), (), body, 0, 1, largest, largest, None)
    assert found == decode_records(body, 1, largest, largest)


def test_more_than_there_are():
    body, _ = encode_records([Record(0, 0, None, None, ())], 0, 0)
    with pytest.raises(ValueError, match="no such records"):
        compiled.make([], Record, (), (), body, 0, 2, 0, 0, None)
    with pytest.raises(ValueError, match="no such records"):
        compiled.make([], Record, (), (), body, 2, 1, 0, 0, None)
    with pytest.raises(TypeError):
        compiled.make([], list, (), (), body, 0, 1, 0, 0, None)


@pytest.mark.parametrize("size", [-1, 1 << 20, (1 << 31) - 1])
def test_a_claim_is_no_reason_to_look_there(size):
    for place in range(3):
        fields = [zigzag(-1), zigzag(-1), zigzag(0)]
        fields[place] = zigzag(size)
        content = b"\0" + zigzag(0) + zigzag(0) + b"".join(fields)
        body = zigzag(len(content)) + content
        assert made(body, 1) == outcome(body, 1)
        assert compiled.sound(body, 1 << 40, 0) == -1


def test_nothing_is_kept():
    given = [Record(n, n, b"key", b"value" * 9, (("name", b"v"), ("other", None))) for n in range(500)]
    body, _ = encode_records(given, 0, 0)
    before = sys.getrefcount(Record), sys.getrefcount(body)
    for _ in range(5):
        found: list[Record] = []
        compiled.make(found, Record, (), (), body, 0, 500, 0, 0, None)
        counts = [
            sys.getrefcount(found[3]),
            sys.getrefcount(found[3].value),
            sys.getrefcount(found[3].headers),
        ]
        assert counts == [2, 2, 2]
    del found
    assert (sys.getrefcount(Record), sys.getrefcount(body)) == before


@pytest.mark.parametrize(
    ("rows", "flags", "at", "start", "size", "count"),
    [
        (8, 3, 1, 0, 16, 2),
        (7, 3, 0, 0, 16, 2),
        (8, 2, 0, 0, 16, 2),
        (8, 3, -1, 0, 16, 2),
        (8, 3, 0, 1, 16, 2),
        (8, 3, 0, -1, 16, 2),
        (8, 3, 0, 0, -1, 2),
        (8, 3, 0, 0, 16, -1),
    ],
)
def test_columns_that_do_not_fit_are_not_filled(rows, flags, at, start, size, count):
    body = (zigzag(7) + bytes.fromhex("00 00 00 01 02 01 00")) * 2
    numbers = np.zeros((rows, 2), np.int64)
    with pytest.raises(ValueError, match="do not fit"):
        compiled.columns(numbers, np.zeros((flags, 2), np.bool_), at, body, start, size, count, 0, 0, None)
    assert not numbers.any()
