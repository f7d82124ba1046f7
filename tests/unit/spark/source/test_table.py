"""Rows as Spark wants them: exactly its types, only the columns asked for, and nothing outside the range."""

import datetime
import subprocess
import sys

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from ottla.client.consumer.fetched_batches import FetchedBatches
from ottla.spark.source.columns import arrow_schema, check_schema, source_schema, spark_schema
from ottla.spark.source.options import ALL_COLUMNS
from ottla.spark.source.reading import rows_of
from ottla.spark.source.refusal import OptionError, Untimely
from ottla.spark.source.table import Table
from ottla.spark.source.task import Portion
from ottla.wire.batch import build_batch
from ottla.wire.record import Record

UTC = datetime.UTC


def rows(records, columns=ALL_COLUMNS, start=0, end=1 << 40, **batch):
    data = bytes(build_batch(records, base_offset=records[0].offset, **batch))
    portion = Portion(FetchedBatches("orders", 3, data, start), records[-1].offset + 1)
    return pa.Table.from_batches(rows_of(portion, Table(columns), end), arrow_schema(columns))


def test_the_schema_is_what_spark_makes_of_it():
    made = to_arrow_schema(spark_schema(ALL_COLUMNS), timezone="UTC")
    assert arrow_schema(ALL_COLUMNS).equals(made, check_metadata=True)
    assert str(arrow_schema(ALL_COLUMNS)) == str(made)


def test_the_schema_is_that_of_sparks_own_source():
    given = {"kafka.bootstrap.servers": "one:9092", "subscribe": "t"}
    assert source_schema(given).simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
        "timestampType:int>"
    )
    assert source_schema(given | {"includeHeaders": "true"}).fieldNames()[-1] == "headers"
    assert source_schema(given | {"columns": "value,offset"}).fieldNames() == ["value", "offset"]


def test_no_other_schema_is_taken():
    check_schema(spark_schema(("value",)), ("value",))
    with pytest.raises(OptionError, match="fixed"):
        check_schema(StructType([StructField("value", StringType())]), ("value",))


def test_every_field():
    records = [
        Record(7, 1_700_000_000_123, b"k", b"v", (("h", b"1"), ("h", None), ("", b""))),
        Record(8, 1_700_000_000_124, None, None),
    ]
    first, second = rows(records).to_pylist()
    assert first == {
        "key": b"k",
        "value": b"v",
        "topic": "orders",
        "partition": 3,
        "offset": 7,
        "timestamp": datetime.datetime(2023, 11, 14, 22, 13, 20, 123000, UTC),
        "timestampType": 0,
        "headers": [{"key": "h", "value": b"1"}, {"key": "h", "value": None}, {"key": "", "value": b""}],
    }
    assert (second["key"], second["value"], second["headers"]) == (None, None, None)


def test_the_brokers_time():
    [row] = rows([Record(0, 5, None, b"v")], log_append_time_ms=1000).to_pylist()
    assert row["timestampType"] == 1
    assert row["timestamp"] == datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)


def test_no_headers_at_all_are_null():
    found = rows([Record(n, 5, None, b"v") for n in range(3)])
    assert found.column("headers").to_pylist() == [None] * 3


@pytest.mark.parametrize("columns", [("value",), ("offset", "key"), ("timestamp",), ("headers", "topic")])
def test_only_what_was_asked_for(columns):
    records = [Record(n, 5 + n, b"k%d" % n, b"v%d" % n, (("h", b"%d" % n),)) for n in range(300)]
    found, everything = rows(records, columns), rows(records)
    assert found.schema.names == list(columns)
    for name in columns:
        assert found.column(name).equals(everything.column(name))


def test_a_range_is_cut_out():
    records = [Record(n, 5, None, b"%d" % n) for n in range(10, 20)]
    assert rows(records, ("offset",), 12, 15).column("offset").to_pylist() == [12, 13, 14]
    assert rows(records, ("value",), 12, 15).column("value").to_pylist() == [b"12", b"13", b"14"]
    assert rows(records, ("offset",), 10, 10).num_rows == 0


def test_a_time_that_spark_cannot_hold():
    records = [Record(4, 5, None, b"v"), Record(5, (1 << 63) // 1000 + 1, None, b"v")]
    with pytest.raises(Untimely, match="offset 5 of orders-3 has the timestamp 9223372036854776"):
        rows(records)
    assert rows(records, ("value",)).num_rows == 2


ALONE = """
import sys
from ottla.client.consumer.fetched_batches import FetchedBatches
from ottla.spark.source.task import Portion
from ottla.spark.source.options import ALL_COLUMNS
from ottla.spark.source.reading import rows_of
from ottla.spark.source.table import Table
from ottla.wire.batch import build_batch
from ottla.wire.record import Record

data = bytes(build_batch([Record(n, 5, b"k", b"v", (("h", b"1"),) * (n % 2)) for n in range(9)]))
[rows] = rows_of(Portion(FetchedBatches("t", 0, data, 1), 9), Table(ALL_COLUMNS), 8)
print(rows.num_rows, "pandas" in sys.modules)
"""


def test_pandas_is_not_loaded_for_it():
    """It takes half a second, in every new process of Spark's."""
    told = subprocess.run(
        [sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=60, check=True
    )
    assert told.stdout.split() == ["7", "False"]
