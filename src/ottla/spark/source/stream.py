"""Reads topics as they grow: what `spark.readStream` does.

The reader is made twice. One, in a process of its own, plans each batch and lives as long as the query: it keeps its
connection and what it knows (`Follower`). The other goes with every task, and reads.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from ottla.spark.source.bundle import bundled, ranges_of
from ottla.spark.source.columns import check_schema
from ottla.spark.source.offsets import Reached
from ottla.spark.source.options import SourceOptions, parse

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.spark.connection import Connection
    from ottla.spark.source.ahead import Ahead
    from ottla.spark.source.following import Follower


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches, in the driver, and reads ranges of them, in tasks."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._given: SourceOptions = parse(options)
        self._schema = schema
        self._connection: Connection | None = None
        self._follower: Follower | None = None
        self._ahead: Ahead | None = None

    @property
    def _options(self) -> SourceOptions:
        """The options, checked now: PySpark 4.3 stumbles over whatever a reader raises while it is made."""
        self._given.check_stream()
        check_schema(self._schema, self._given.columns)
        return self._given

    def _following(self) -> "tuple[Connection, Follower]":
        if self._connection is None or self._follower is None:
            from ottla.spark.connection import planning
            from ottla.spark.source.following import Follower
            from ottla.spark.source.survey import Surveyor

            options = self._options
            self._connection = planning(options.settings)
            self._follower = Follower(options, Surveyor(options, self._connection))
        return self._connection, self._follower

    def _fetching(self, connection: "Connection") -> "Ahead":
        if self._ahead is None:
            from ottla.spark.source.ahead import Ahead

            self._ahead = Ahead(connection, self._options)
        return self._ahead

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return where a new query begins."""
        connection, follower = self._following()
        return connection.run(follower.initial()).json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit that the options set. Spark knows no two at once, so `latestOffset` looks at both anyhow."""
        options = self._options
        if options.offsets_per_trigger_max is not None:
            return ReadMaxRows(options.offsets_per_trigger_max)
        if options.offsets_per_trigger_min is not None:
            return ReadMinRows(options.offsets_per_trigger_min)
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Return where the batch that begins at `start` is to end."""
        connection, follower = self._following()
        limited = not isinstance(limit, ReadAllAvailable)
        reached = Reached.of(start)
        end = connection.run(follower.advance(reached, limited=limited))
        self._fetching(connection).begin(reached, end)
        return end.json()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """Return how far the topics are, for progress reports; from the end of the batch up to there is the lag."""
        latest = None if self._follower is None else self._follower.latest
        return None if latest is None else latest.json(plain=True)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read what is there now, and no more."""
        self._following()[1].stop_at_end()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the ranges of a batch, one for each task."""
        connection, follower = self._following()
        last = Reached.of(end)
        planned = connection.run(follower.plan(Reached.of(start), last))
        self._fetching(connection).give(planned)
        few = self._options.records_per_partition_min if last.division is None else last.division.records_min
        return bundled(planned, few)

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """Return the records of a range."""
        from ottla.spark.source.reading import read

        return read(self._options, *ranges_of(partition))

    def commit(self, end: dict[str, Any]) -> None:
        """Take note that a batch is finished."""
        connection, follower = self._following()
        connection.run(follower.tell(Reached.of(end)))

    def stop(self) -> None:
        """Nothing is to be done: the process ends, and its connections with it."""
