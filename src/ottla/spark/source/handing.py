"""Hands the rows of a small micro-batch to Spark together with its plan, so that no process has to be asked for them.

Of 50 ms that such a batch takes, some 6 go by in a Python process that is woken, told what to read, and has read it
long before. PySpark can take rows with a plan, but only from its own wrapper of simple readers, and looks whether it
has one right after `partitions`. So a reader that has rows goes by that name until they are taken, and by its own at
all other times: as the wrapper it would not be asked for limits, nor how far its topics are.

N1  What a batch reads is settled by its ends. Rows that Spark has lost are read by a task, as if there had been none.
N2  Rows that cannot be made are left to a task, which meets whatever is wrong and says so.
"""

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.datasource_internal import _SimpleStreamReaderWrapper

from ottla.spark.source.bundle import ranges_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from ottla.spark.source.options import SourceOptions


class HandingReader(DataSourceStreamReader):
    """A reader that may have rows for Spark to take."""

    _rows: "list[pa.RecordBatch] | None" = None

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self) if self._rows is None else _SimpleStreamReaderWrapper

    def _hand_over(self, options: "SourceOptions", planned: list[InputPartition]) -> None:
        """Make rows of what was fetched for a batch, if that is all of it and the batch is one task."""
        self._rows = None
        if len(planned) != 1:
            return
        tasks = ranges_of(planned[0])
        if not all(each.portions for each in tasks):
            return
        from ottla.spark.source.reading import read

        try:
            self._rows = list(read(options, *tasks))
        except Exception:  # noqa: BLE001
            return  # N2
        for each in tasks:
            each.portions = ()

    def getCache(self, start: dict[str, Any], end: dict[str, Any]) -> "Iterator[pa.RecordBatch]":  # noqa: N802
        """Give Spark the rows, once."""
        rows, self._rows = self._rows, None
        return iter(rows or ())
