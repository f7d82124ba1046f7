"""Records as Arrow: the schema that is promised, and the corners of it."""

import re
import subprocess
import sys

import pyarrow as pa
import pytest

from ottla.client.consumer import arrow_records as arrow
from ottla.client.consumer.arrow_records import SCHEMA, arrow_records_of, record_batch_of
from ottla.client.consumer.fetched_batches import FetchedBatches
from ottla.client.errors import Malformed, RecordTooLarge
from ottla.wire.batch import Batch, assemble, build_batch
from ottla.wire.compression import Codec
from ottla.wire.record import Record


def fetched(*records: Record, topic: str = "t", partition: int = 3, start: int = 0, **more) -> FetchedBatches:
    data = build_batch(records, base_offset=records[0].offset, **more)
    return FetchedBatches(topic, partition, data, start)


def column(name: str, *fetched_parts: FetchedBatches) -> list:
    batch = record_batch_of(fetched_parts)
    batch.validate(full=True)
    return batch.column(name).to_pylist()


def test_the_schema_is_the_one_that_is_documented():
    promised = re.findall(r"^    (\w+) +(\w+(?:\[.*?\]|<.*>)?)", arrow.__doc__, re.MULTILINE)

    def plain(kind: pa.DataType) -> str:
        return str(kind).replace("tz=", "").replace("list<item: ", "list<")

    assert promised == [(field.name, plain(field.type)) for field in SCHEMA]


def test_what_is_missing_is_told():
    command = "import sys; sys.modules['pyarrow'] = None; import ottla.client.consumer.arrow_records"
    result = subprocess.run(
        [sys.executable, "-c", command], check=False, capture_output=True, text=True, timeout=60
    )
    assert "pip install 'ottla[arrow]'" in result.stderr.splitlines()[-1]


def test_a_row_has_everything():
    found = record_batch_of(
        [
            fetched(Record(5, 1_000, b"k", b"v", (("h", b"1"), ("i", None))), leader_epoch=4),
            fetched(Record(9, 1_000, None, None), topic="other", partition=1, log_append_time_ms=2_000),
        ]
    )
    found.validate(full=True)
    assert found.schema == SCHEMA
    timestamps = found.column("timestamp")
    assert timestamps.cast(pa.int64()).to_pylist() == [1_000, 2_000]
    assert str(timestamps[0].as_py()) == "1970-01-01 00:00:01+00:00"
    assert [{**row, "timestamp": None} for row in found.to_pylist()] == [
        {
            "topic": "t",
            "partition": 3,
            "offset": 5,
            "timestamp": None,
            "timestamp_type": 0,
            "leader_epoch": 4,
            "key": b"k",
            "value": b"v",
            "headers": [{"key": "h", "value": b"1"}, {"key": "i", "value": None}],
        },
        {
            "topic": "other",
            "partition": 1,
            "offset": 9,
            "timestamp": None,
            "timestamp_type": 1,
            "leader_epoch": -1,
            "key": None,
            "value": None,
            "headers": [],
        },
    ]


def test_nothing_has_the_schema_too():
    for nothing in ([], [FetchedBatches("t", 3, b"", 0)]):
        found = record_batch_of(nothing)
        found.validate(full=True)
        assert (found.num_rows, found.schema) == (0, SCHEMA)


@pytest.mark.parametrize("values", [[None, b"a", None, b""], [None] * 3, [b""] * 3, [b"x" * 300, None]])
def test_nulls_are_null_and_nothing_else_is(values):
    records = [Record(n, 0, value, value, (("h", value),)) for n, value in enumerate(values)]
    assert column("key", fetched(*records)) == values
    assert column("value", fetched(*records)) == values
    assert column("headers", fetched(*records)) == [[{"key": "h", "value": value}] for value in values]


def test_a_table_owns_its_bytes():
    data = build_batch([Record(0, 0, b"key", b"value")])
    found = record_batch_of([FetchedBatches("t", 3, memoryview(data), 0)])
    data[:] = bytes(len(data))
    assert found.column("value").to_pylist() == [b"value"]


def test_a_name_that_is_no_utf8_is_mended():
    records = [
        Record(0, 0, None, None, (("fine", None), ("a\udcffb", None))),
        Record(1, 0, None, None, (("é", b""),)),
    ]
    assert column("headers", fetched(*records)) == [
        [{"key": "fine", "value": None}, {"key": "a\ufffdb", "value": None}],
        [{"key": "é", "value": b""}],
    ]


def test_each_chunk_begins_where_it_should():
    records = [Record(n, 0, None, b"%d" % n) for n in range(10)]
    several = [fetched(*records, start=start, partition=start) for start in (0, 7, 10)]
    assert column("offset", *several) == [*range(10), 7, 8, 9]
    assert arrow_records_of(several).next_offsets == [10, 10, 10]


def test_what_cannot_be_read_stops_its_own_chunk():
    good = fetched(*(Record(n, 0, None, b"v") for n in range(3)))
    bad = assemble(Batch.parse(fetched(Record(3, 0, None, b"v")).data), b"\x0e\0\0\0\1\1\0\0")
    broken = good._replace(data=good.data + bad, partition=4)
    found = arrow_records_of([broken, good])
    assert found.batch.column("offset").to_pylist() == [0, 1, 2, 0, 1, 2]
    assert found.next_offsets == [3, 3]
    assert isinstance(found.fault, Malformed)
    assert "batch at offset 3 of t-4" in str(found.fault)
    with pytest.raises(Malformed):
        record_batch_of([broken, good])
    found = arrow_records_of([broken._replace(start_offset=3)])
    assert (found.batch.num_rows, found.next_offsets) == (0, [3])
    assert found.fault is not None


def test_bad_headers_are_noticed_too():
    bad = assemble(Batch.parse(fetched(Record(0, 0, None, b"v")).data), b"\x10\0\0\0\1\1\2\1\1")
    assert isinstance(arrow_records_of([FetchedBatches("t", 3, bad, 0)]).fault, Malformed)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.SNAPPY])
def test_what_does_not_fit_into_a_table_waits(codec, monkeypatch):
    monkeypatch.setattr(arrow, "BYTES_MAX", 1_000)
    batches = [build_batch([Record(n, 0, None, bytes(300))], base_offset=n, codec=codec) for n in range(4)]
    whole = FetchedBatches("t", 3, b"".join(batches), 0)
    several = [whole, whole._replace(partition=4)]
    found = arrow_records_of(several)
    assert (found.batch.num_rows, found.next_offsets, found.fault) == (3, [3, 0], None)
    again = [
        each._replace(start_offset=start) for each, start in zip(several, found.next_offsets, strict=True)
    ]
    found = arrow_records_of(again)
    assert (found.batch.column("offset").to_pylist(), found.next_offsets) == ([3, 0, 1], [4, 2])
    monkeypatch.setattr(arrow, "BYTES_MAX", 200)
    assert isinstance(arrow_records_of(several).fault, RecordTooLarge)


def test_no_more_is_read_than_is_asked_for():
    batches = [
        build_batch([Record(n, 0, None, b"v"), Record(n + 1, 0, None, b"v")], base_offset=n)
        for n in (0, 2, 4)
    ]
    several = [FetchedBatches("t", partition, b"".join(batches), 0) for partition in range(3)]
    found = arrow_records_of(several, records_max=7)
    assert (found.batch.num_rows, found.next_offsets) == (8, [6, 2, 0])
    found = arrow_records_of([each._replace(start_offset=1) for each in several], records_max=1)
    assert (found.batch.column("offset").to_pylist(), found.next_offsets) == ([1], [2, 1, 1])


def test_long_names_of_topics_count_as_well(monkeypatch):
    monkeypatch.setattr(arrow, "BYTES_MAX", 500)
    few = fetched(*(Record(n, 0, None, None) for n in range(2)), topic="t" * 200)
    many = fetched(*(Record(n, 0, None, None) for n in range(3)), topic="t" * 200)
    found = arrow_records_of([few, few])
    assert (found.batch.num_rows, found.next_offsets, found.fault) == (2, [2, 0], None)
    assert "too many for one table" in str(arrow_records_of([many]).fault)
