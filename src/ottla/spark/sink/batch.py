"""The sink of a job that is no stream, all of it or nothing: `df.write.format("ottla").save()`.

The object that has planned is the one that commits, and tasks get copies of it.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from ottla.spark.settling import settle
from ottla.spark.sink import writing
from ottla.spark.sink.options import SinkOptions
from ottla.spark.sink.refusal import OptionError
from ottla.spark.sink.rows import check_schema
from ottla.spark.sink.spool import Folder

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class BatchWriter(DataSourceArrowWriter):
    """Writes the rows of one job: those of a micro-batch, if `write_batch` has said which, and then once."""

    def __init__(self, options: Mapping[str, str], schema: "StructType", overwrite: bool) -> None:
        if overwrite:
            hint = 'write with mode("append"); to begin anew, delete the topic, and create it again'
            raise OptionError("a topic cannot be overwritten", hint=hint)
        self._options = SinkOptions.of(options)
        check_schema(schema, self._options.topic)
        self._folder = Folder.draw()
        # A name of its own: nobody comes back to finish a job that has failed.
        self._name = self._options.transactional_id or self._folder.name
        settle()

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        """Do the work of a task."""
        return writing.write(self._options, self._name, self._folder, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Write what the tasks have handed over; called once all tasks are done."""
        writing.commit(self._options, self._name, messages, self._options.batch_id)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Clear away what tasks have left, and what was written of it early."""
        writing.abort(self._options, self._name, messages)
