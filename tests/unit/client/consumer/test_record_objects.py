"""Records as objects, read by each of the ways."""

import sys

import pytest

from ottla.client.consumer import packed_records as packed
from ottla.client.consumer import record_objects as objects
from ottla.client.consumer.fetched_batches import FetchedBatches
from ottla.client.consumer.record_objects import records_of
from ottla.client.errors import Malformed
from ottla.client.record import Record
from ottla.wire.batch import Batch, assemble, build_batch
from ottla.wire.record import Record as Plain
from ottla.wire.record import zigzag


@pytest.fixture(params=["packed", "one by one", "all at once"])
def way(request, monkeypatch):
    if request.param == "packed":
        if packed._records is None:
            pytest.skip("ottla.wire._records was not built: there was no C compiler")
        monkeypatch.setattr(objects, "_one_by_one", None)
        monkeypatch.setattr(objects, "_by_columns", None)
        return
    monkeypatch.setattr(packed, "_records", None)
    monkeypatch.setattr(objects, "COLUMNS_MIN", 0 if request.param == "all at once" else 1 << 60)
    monkeypatch.setattr(objects, "_one_by_one" if request.param == "all at once" else "_by_columns", None)


def batch(start: int, count: int, **more) -> bytearray:
    records = [Plain(start + n, 1_000 + n, b"k", b"v", (("h", b"%d" % n),) * (n % 2)) for n in range(count)]
    return build_batch(records, base_offset=start, **more)


def test_a_record_has_everything(way):
    data = batch(5, 2, leader_epoch=4) + batch(7, 1, leader_epoch=5, log_append_time_ms=99)
    assert records_of(FetchedBatches("t", 3, data, 5)) == (
        [
            Record("t", 3, 5, 1_000, b"k", b"v", (), 0, 4, 0),
            Record("t", 3, 6, 1_001, b"k", b"v", (("h", b"1"),), 0, 4, 0),
            Record("t", 3, 7, 99, b"k", b"v", (), 1, 5, 0),
        ],
        8,
        None,
    )


def test_some_nulls(way):
    pairs = [(None, b"v"), (b"k", None), (b"", b""), (None, None)]
    data = build_batch([Plain(n, 0, key, value) for n, (key, value) in enumerate(pairs)])
    assert [(each.key, each.value) for each in records_of(FetchedBatches("t", 3, data, 0)).records] == pairs


def test_names_that_are_no_utf8_stay_what_they_are(way):
    data = build_batch([Plain(0, 0, None, None, (("\udcff", None),))])
    assert records_of(FetchedBatches("t", 3, data, 0)).records[0].headers == (("\udcff", None),)


def test_a_start_within_a_batch(way):
    found = records_of(FetchedBatches("t", 3, batch(0, 10), 4))
    assert [record.offset for record in found.records] == [4, 5, 6, 7, 8, 9]


def test_an_empty_batch_is_passed(way):
    # So much is left of a batch whose records were all compacted away.
    empty = assemble(Batch.parse(batch(0, 3))._replace(record_count=0, attributes=1), b"")
    assert records_of(FetchedBatches("t", 3, empty, 0)) == ([], 3, None)
    found = records_of(FetchedBatches("t", 3, empty + batch(3, 2), 0))
    assert [record.offset for record in found.records] == [3, 4]


@pytest.mark.parametrize("before", [0, 2])
@pytest.mark.parametrize(
    ("body", "count"), [(zigzag(6) + b"\0\0\0\1\1\0" + b"\0", 1), (zigzag(5) + b"\0\0\0\1\1", 1), (b"", -1)]
)
def test_nonsense_hides_nothing_before_it(before, body, count, monkeypatch):
    bad = assemble(Batch.parse(batch(before, 3))._replace(record_count=count), body)
    for columns_min in (1, 1 << 60):
        monkeypatch.setattr(objects, "COLUMNS_MIN", columns_min)
        first = batch(0, before) if before else b""
        found = records_of(FetchedBatches("t", 3, first + bad + batch(before + 3, 1), 0))
        assert [record.offset for record in found.records] == list(range(before))
        assert found.next_offset == before
        assert isinstance(found.fault, Malformed)
        assert f"seek to offset {before + 3}" in found.fault.hint


def test_without_numpy_all_is_read_one_by_one(monkeypatch):
    monkeypatch.setattr(packed, "_records", None)
    monkeypatch.setitem(sys.modules, "numpy", None)
    monkeypatch.setattr(objects, "_by_columns", None)
    objects._numpy_is_here.cache_clear()
    try:
        assert len(records_of(FetchedBatches("t", 3, batch(0, 1_000), 0)).records) == 1_000
    finally:
        objects._numpy_is_here.cache_clear()


def test_many_are_read_all_at_once_and_few_are_not(monkeypatch):
    monkeypatch.setattr(packed, "_records", None)
    calls = []
    both = {name: getattr(objects, name) for name in ("_one_by_one", "_by_columns")}
    for name, read in both.items():
        monkeypatch.setattr(
            objects, name, lambda *given, name=name, read=read: calls.append(name) or read(*given)
        )
    for count in (objects.COLUMNS_MIN - 1, objects.COLUMNS_MIN):
        halves = batch(0, count // 2) + batch(count // 2, count - count // 2)
        assert len(records_of(FetchedBatches("t", 3, halves, 0)).records) == count
    assert calls == ["_one_by_one", "_by_columns"]
