"""Records made a slice at a time are those that are made all at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.consumer import packed_records as packed
from ottla.client.consumer.fetched_batches import FetchedBatches, read_batches
from ottla.client.consumer.record_objects import COLUMNS_MIN, ColumnRecords, _one_by_one, lazy_records_of
from ottla.wire.batch import build_batch
from ottla.wire.record import Record

COUNT = COLUMNS_MIN * 2


def data():
    """Records of every kind, in batches that differ in epoch and in whose time they bear."""
    parts = b""
    for start in range(0, COUNT, 16):
        records = [
            Record(
                n,
                5_000 + n,
                None if n % 3 else b"k%d" % n,
                None if n % 7 == 2 else b"v" * (n % 90),
                (("h", b"%d" % n), ("x", None)) if n % 5 == 1 else (),
            )
            for n in range(start, start + 16)
        ]
        stamped = {"log_append_time_ms": 77} if start % 48 == 0 else {}
        parts += bytes(build_batch(records, base_offset=start, leader_epoch=start // 32, **stamped))
    return parts


DATA = data()


@pytest.mark.parametrize("kind", [ColumnRecords, packed.PackedRecords])
@given(start_offset=st.integers(0, COUNT), start=st.integers(0, COUNT), stop=st.integers(0, COUNT))
def test_any_slice(kind, start_offset, start, stop):
    fetched = FetchedBatches("t", 3, DATA, start_offset)
    readable = read_batches(fetched)
    if kind is ColumnRecords:
        rows = ColumnRecords(fetched, readable.batches, readable.bodies) if readable.batches else []
    else:
        rows = packed.pack_records(fetched, readable.batches, readable.bodies)
        if rows is None:
            pytest.skip("ottla.wire._records was not built: there was no C compiler")
    whole = [
        record
        for record in _one_by_one(fetched, readable.batches, readable.bodies)
        if record.offset >= start_offset
    ]
    assert len(rows) == len(whole) == COUNT - start_offset
    assert rows[start:stop] == whole[start:stop]


def test_few_are_a_list(monkeypatch):
    monkeypatch.setattr(packed, "_records", None)
    few = bytes(build_batch([Record(n, 0, None, b"v") for n in range(5)]))
    assert [record.offset for record in lazy_records_of(FetchedBatches("t", 3, few, 2)).rows] == [2, 3, 4]
