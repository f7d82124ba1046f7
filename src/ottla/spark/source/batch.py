"""Reads topics once, from one place to another: what `spark.read` does.

B1  Both ends are settled when the read is planned, so that every task, and every try at one, reads the same.
B2  The end is at most what may be read then; what is written later is not part of it.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from ottla.spark.source.bundle import Bundle, bundled, ranges_of
from ottla.spark.source.columns import check_schema
from ottla.spark.source.options import SourceOptions, parse

if TYPE_CHECKING:
    import pyarrow as pa


class BatchReader(DataSourceReader):
    """Plans a read, in the driver, and reads a range of it, in a task."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options: SourceOptions = parse(options)
        self._options.check_batch()
        check_schema(schema, self._options.columns)

    def partitions(self) -> list[InputPartition]:
        """Return the ranges to read, one for each task."""
        from ottla.spark.connection import planning
        from ottla.spark.source.planning import plan_batch

        connection = planning(self._options.settings)
        planned = connection.run(plan_batch(self._options, connection))
        # Spark would call for one partition of its own making if there were none.
        return bundled(planned, self._options.records_per_partition_min) or [Bundle(())]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """Return the records of a range."""
        from ottla.spark.source.reading import read

        return read(self._options, *ranges_of(partition))
