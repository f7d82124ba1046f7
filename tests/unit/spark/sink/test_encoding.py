"""What a task makes of rows: batches that a broker takes, with the rows in their order."""

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.client.errors import RecordTooLarge
from ottla.client.producer.batch import ProducerBatch
from ottla.client.producer.config import ProducerConfig
from ottla.client.producer.partition_queue import TopicQueues
from ottla.client.settings import resolve
from ottla.spark.sink.encoding import Encoder, Sealed
from ottla.spark.sink.partitioning import Partitioning, Target
from ottla.spark.sink.refusal import WrongColumns
from ottla.spark.sink.rows import check_schema
from ottla.wire.batch import read_records
from ottla.wire.compression import Codec
from ottla.wire.record import Record
from ottla.world.entropy import SeededEntropy

NOW_MS = 1_700_000_000_000
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def encoder(
    topic: str | None = "out", batch_bytes: int = 900_000, partitions: int = 1, **settings: object
) -> Encoder:
    terms = ProducerConfig.of(resolve("producer", "localhost:9092", settings))
    return Encoder(
        terms,
        batch_bytes,
        topic,
        Partitioning(SeededEntropy(1)),
        lambda name: Target(name, partitions, tuple(range(partitions))),
        lambda: NOW_MS,
    )


def records(sealed: Sealed) -> list[Record]:
    """What a broker would read."""
    batch = ProducerBatch(TopicQueues("out", 0).queue(0), 0, sealed.filled.base_timestamp, 0.0, 0)
    batch.fill(sealed.filled)
    batch.number(7, 1, 0)
    batch.encode(Codec.NONE, None, True)
    return read_records(bytes(batch.buffer))


def encode(made: Encoder, **columns: pa.Array) -> list[Sealed]:
    return list(made.encode(iter([pa.RecordBatch.from_pydict(columns)])))


def test_a_row() -> None:
    (sealed,) = encode(encoder(), value=pa.array(["größer"]))
    assert (sealed.topic, sealed.partition, sealed.filled.record_count) == ("out", 0, 1)
    assert records(sealed) == [Record(0, NOW_MS, None, "größer".encode())]


def test_everything_a_row_can_have() -> None:
    (sealed,) = encode(
        encoder(None, partitions=3),
        key=pa.array([b"k", None], pa.binary()),
        value=pa.array([b"v", None], pa.binary()),
        topic=pa.array(["a", "a"]),
        partition=pa.array([2, 2], pa.int32()),
        headers=pa.array([[{"key": "h", "value": b"1"}, {"key": "i", "value": None}], None], HEADERS),
        timestamp=pa.array([1_600_000_000_123_999, None], pa.timestamp("us", "UTC")),
        offset=pa.array([5, 6], pa.int64()),
    )
    assert (sealed.topic, sealed.partition) == ("a", 2)
    assert records(sealed) == [
        Record(0, 1_600_000_000_123, b"k", b"v", (("h", b"1"), ("i", None))),
        Record(1, NOW_MS, None, None),
    ]
    assert sealed.filled.max_timestamp == NOW_MS


def test_columns_of_nothing_but_nulls() -> None:
    (sealed,) = encode(
        encoder(),
        key=pa.nulls(2, pa.string()),
        value=pa.array(["a", "b"]),
        partition=pa.nulls(2, pa.int32()),
        headers=pa.nulls(2),
        timestamp=pa.nulls(2),
    )
    assert [each.key for each in records(sealed)] == [None, None]


def test_rows_keep_their_order_in_each_partition() -> None:
    numbers = range(1000)
    found = encode(
        encoder(partitions=4, batch_bytes=2000),
        value=pa.array([b"%d" % number for number in numbers], pa.binary()),
        partition=pa.array([number * 7 % 4 for number in numbers], pa.int32()),
    )
    assert len(found) > 4
    by_partition: dict[int, list[bytes]] = {}
    for sealed in found:
        by_partition.setdefault(sealed.partition, []).extend(each.value or b"" for each in records(sealed))
    assert by_partition == {
        partition: [b"%d" % number for number in numbers if number * 7 % 4 == partition]
        for partition in range(4)
    }


def test_rows_for_several_topics() -> None:
    found = encode(
        encoder(None),
        topic=pa.array(["a", "b", "a"]),
        value=pa.array(["1", "2", "3"]),
        key=pa.array(["x", None, None]),
    )
    assert {each.topic: [(r.key, r.value) for r in records(each)] for each in found} == {
        "a": [(b"x", b"1"), (None, b"3")],
        "b": [(None, b"2")],
    }


def test_a_batch_has_its_limit() -> None:
    found = encode(encoder(batch_bytes=10_000), value=pa.array([b"x" * 1000] * 95, pa.binary()))
    assert sum(each.filled.record_count for each in found) == 95
    assert all(len(each.filled.buffer) <= 10_000 for each in found)
    assert len(found) <= 12


def test_a_record_larger_than_a_batch_is_alone() -> None:
    found = encode(encoder(batch_bytes=500), value=pa.array([b"x", b"y" * 5000, b"z"], pa.binary()))
    assert [each.filled.record_count for each in found] == [1, 1, 1]


def test_a_record_that_is_too_large() -> None:
    with pytest.raises(
        RecordTooLarge,
        match="topic out takes 2000\\d\\d bytes, and max.request.size is 100000\nhint: raise kafka",
    ):
        encode(encoder(**{"max.request.size": 100_000}), value=pa.array([b"x", b"y" * 200_000], pa.binary()))


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compression(codec: str) -> None:
    (sealed,) = encode(
        encoder(**{"compression.type": codec}), value=pa.array([b"x" * 100] * 100, pa.binary())
    )
    assert len(sealed.filled.buffer) < 2000
    assert [each.value for each in records(sealed)] == [b"x" * 100] * 100


def test_small_batches_of_arrow_are_gathered() -> None:
    parts = [pa.RecordBatch.from_pydict({"value": [f"{number}"]}) for number in range(500)]
    (sealed,) = encoder().encode(iter([parts[0].slice(0, 0), *parts]))
    assert [each.value for each in records(sealed)] == [b"%d" % number for number in range(500)]


def test_slices_of_arrow() -> None:
    whole = pa.RecordBatch.from_pydict(
        {"key": [f"k{n}" for n in range(9)], "value": [f"{n}" for n in range(9)]}
    )
    (sealed,) = encoder().encode(iter([whole.slice(3, 4)]))
    assert [(each.key, each.value) for each in records(sealed)] == [
        (b"k%d" % n, b"%d" % n) for n in range(3, 7)
    ]


def test_large_types_of_arrow() -> None:
    (sealed,) = encode(
        encoder(), key=pa.array(["k", None], pa.large_string()), value=pa.array([b"v", b"w"], pa.large_binary()),
        headers=pa.array([[{"key": "h", "value": b"1"}], []], HEADERS),
    )  # fmt: skip
    assert [(each.key, each.value) for each in records(sealed)] == [(b"k", b"v"), (None, b"w")]


def test_no_rows() -> None:
    assert list(encoder().encode(iter([]))) == []


def test_a_row_without_a_topic() -> None:
    with pytest.raises(WrongColumns, match="a row has no topic\nhint: "):
        encode(encoder(None), topic=pa.array(["a", None]), value=pa.array(["1", "2"]))


def test_a_header_without_a_name() -> None:
    with pytest.raises(WrongColumns, match="a header has no key\nhint: "):
        encode(encoder(), value=pa.array(["1"]), headers=pa.array([[{"key": None, "value": b"1"}]], HEADERS))


def test_a_time_before_1970() -> None:
    with pytest.raises(WrongColumns, match="before 1970\nhint: "):
        encode(encoder(), value=pa.array(["1"]), timestamp=pa.array([-1], pa.timestamp("us", "UTC")))


def schema(**columns: object) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])  # type: ignore[arg-type]


def test_schemas_that_can_be_written() -> None:
    headers = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
    check_schema(schema(value=StringType()), "out")
    check_schema(schema(value=BinaryType(), key=NullType(), other=LongType()), "out")
    check_schema(
        schema(value=BinaryType(), key=StringType(), topic=StringType(), partition=IntegerType(),
               headers=headers, timestamp=TimestampType()), None
    )  # fmt: skip


@pytest.mark.parametrize(
    ("columns", "topic", "complaint"),
    [
        ({"key": StringType()}, "out", "no column value; they have key\nhint: name"),
        ({"value": StringType()}, None, "which topic the rows go to\nhint: set the option topic"),
        ({"value": LongType()}, "out", "column value is bigint\nhint: cast it to string or binary"),
        (
            {"value": StringType(), "partition": LongType()},
            "out",
            "partition is bigint\nhint: cast it to int",
        ),
        (
            {"value": StringType(), "headers": StringType()},
            "out",
            "headers is string\nhint: make it array<struct",
        ),
        ({"value": StringType(), "timestamp": StringType()}, "out", "cast it to timestamp"),
    ],
)
def test_schemas_that_cannot(columns: dict[str, object], topic: str | None, complaint: str) -> None:
    with pytest.raises(WrongColumns, match=complaint):
        check_schema(schema(**columns), topic)
