"""The format `ottla` of Spark's readers and writers: which class does what is asked for.

This class travels to Spark's Python processes by its name, so `ottla` is to be installed wherever a task runs. It
holds nothing but the options, and each half is imported where it is used: a task that writes loads no reader. An error
crosses from one process to another as text, so what a refused option has to say beside its message is put into words
here.
"""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from ottla.spark.failure import translated

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ottla.spark.sink.batch import BatchWriter
    from ottla.spark.sink.stream import StreamWriter
    from ottla.spark.source.batch import BatchReader
    from ottla.spark.source.stream import StreamReader


class OttlaSource(DataSource):
    """Topics of Ottla or of Apache Kafka, as a source and a sink of Spark."""

    @classmethod
    def name(cls) -> str:
        """Return what to pass to `format`."""
        return "ottla"

    @translated()
    def schema(self) -> "StructType":
        """Return the columns of a read; a write brings its own."""
        from ottla.spark.source.columns import source_schema

        return source_schema(self.options)

    @translated()
    def reader(self, schema: "StructType") -> "BatchReader":
        """Return what serves `spark.read`."""
        from ottla.spark.source.batch import BatchReader

        return BatchReader(self.options, schema)

    @translated()
    def streamReader(self, schema: "StructType") -> "StreamReader":  # noqa: N802
        """Return what serves `spark.readStream`."""
        from ottla.spark.source.stream import StreamReader

        return StreamReader(self.options, schema)

    @translated()
    def writer(self, schema: "StructType", overwrite: bool) -> "BatchWriter":
        """Return what serves `DataFrame.write`."""
        from ottla.spark.sink.batch import BatchWriter

        return BatchWriter(self.options, schema, overwrite)

    @translated()
    def streamWriter(self, schema: "StructType", overwrite: bool) -> "StreamWriter":  # noqa: N802
        """Return what serves `DataFrame.writeStream`."""
        from ottla.spark.sink.stream import StreamWriter

        return StreamWriter(self.options, schema, overwrite)
