"""What a task tells the driver when it is done."""

from dataclasses import dataclass

from pyspark.sql.datasource import WriterCommitMessage

from ottla.spark.sink.spool import Spool


@dataclass(frozen=True)
class Spooled(WriterCommitMessage):
    """Here is what the task would write, for the driver to write it. The query is that of its stream, if it has one."""

    query_id: str | None
    spool: Spool
    token: str
    """What no other attempt of any task has."""


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """The task has written its rows by itself, or an earlier attempt of it had."""
