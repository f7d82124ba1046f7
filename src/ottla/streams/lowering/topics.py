"""Where a query's records come from: topics of a cluster, or records that were given for a test."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from ottla.client.record import Record
from ottla.streams.plan.sources import Source, reads

_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_FILE = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("headers", _HEADERS),
    ]
)
_SCHEMA = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key:string,value:binary>>"
)


class ClusterTopics:
    """Topics of Ottla or Apache Kafka, by the source `ottla`."""

    def __init__(self, spark: SparkSession, options: Mapping[str, str]) -> None:
        self._spark = spark
        self._options = options
        self._frames: dict[Source, DataFrame] = {}

    def read(self, source: Source) -> DataFrame:
        """Return the records of a source, for ever."""
        # The same frame every time: Spark takes two for two sources, each with a progress of its own.
        if source not in self._frames:
            self._frames[source] = self._read(source)
        return self._frames[source]

    def _read(self, source: Source) -> DataFrame:
        reader = (
            self._spark.readStream.format("ottla").options(**self._options).option("includeHeaders", "true")
        )
        if "startingOffsets" not in self._options:
            reader = reader.option("startingOffsets", source.starting)
        if source.pattern is not None:
            return reader.option("subscribePattern", source.pattern).load()
        return reader.option("subscribe", ",".join(source.topics)).load()


class GivenTopics:
    """Records that somebody gave, as files that Spark reads as a stream: a file a source is a micro-batch.

    More may be given later, for a query that begins where it ended before.
    """

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self._spark = spark
        self._directory = directory
        self._frames: dict[Source, DataFrame] = {}
        self._files = 0
        self._latest_ms = 0

    def read(self, source: Source) -> DataFrame:
        """Return the records that were given for a source, and those that will be."""
        if source not in self._frames:
            self._frames[source] = self._read(source)
        return self._frames[source]

    def _read(self, source: Source) -> DataFrame:
        place = self._directory / source.name
        place.mkdir(parents=True, exist_ok=True)
        return (
            self._spark.readStream.format("parquet")
            .schema(_SCHEMA)
            .option("maxFilesPerTrigger", "1")
            .load(place.as_uri())
        )

    def give(self, sources: Sequence[Source], given: Mapping[str, Sequence[Record]], batches: int) -> None:
        """Give records by topic, divided into so many micro-batches."""
        for source in sources:
            place = self._directory / source.name
            place.mkdir(parents=True, exist_ok=True)
            records = [record for topic, each in given.items() if reads(source, topic) for record in each]
            size = -(-len(records) // batches) or 1
            for n in range(batches):
                self._write(place, records[n * size : (n + 1) * size])

    def _write(self, place: Path, records: Sequence[Record]) -> None:
        columns = [
            [record.key for record in records],
            [record.value for record in records],
            [record.topic for record in records],
            [record.partition for record in records],
            [record.offset for record in records],
            [record.timestamp * 1000 for record in records],
            [[{"key": name, "value": value} for name, value in record.headers] for record in records],
        ]
        table = pa.table(
            [pa.array(each, kind.type) for each, kind in zip(columns, _FILE, strict=True)], schema=_FILE
        )
        self._files += 1
        path = place / f"{self._files:06}.parquet"
        hidden = place / f".{path.name}"
        pq.write_table(table, hidden)
        hidden.rename(path)
        # Spark takes files in the order of their times, to the millisecond.
        while path.stat().st_mtime_ns // 1_000_000 <= self._latest_ms:
            path.touch()
        self._latest_ms = path.stat().st_mtime_ns // 1_000_000
