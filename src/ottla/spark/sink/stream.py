"""The sink of a streaming query in append mode.

Spark makes a new object of this class wherever it needs one: for each micro-batch one to plan, of which tasks get
copies, and another one to commit or abort. So nothing is kept here but what the options say.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from ottla.spark.settling import settle
from ottla.spark.sink import writing
from ottla.spark.sink.options import SinkOptions
from ottla.spark.sink.rows import check_schema
from ottla.spark.sink.spool import Folder

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes the micro-batches of one query, each once."""

    def __init__(self, options: Mapping[str, str], schema: "StructType", overwrite: bool) -> None:
        self._options = SinkOptions.of(options)
        check_schema(schema, self._options.topic)
        self._folder = Folder.draw()
        settle()

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        """Do the work of a task."""
        return writing.write(self._options, self._options.transactional_id, self._folder, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Write what the tasks have handed over, unless it is written; called once all tasks are done."""
        writing.commit(self._options, self._options.transactional_id, messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Clear away what tasks have left.

        The only transaction to abort is one that was begun early. If `commit` failed without knowing whether it had
        committed, only the marker knows, which the next attempt at this batch asks.
        """
        writing.abort(self._options, self._options.transactional_id, messages)
