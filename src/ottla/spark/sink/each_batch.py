"""Writing from `foreachBatch`, which is how a query in update or complete mode writes, and one with several sinks.

def write(df, batch_id):
    write_batch(df, batch_id, kafka_bootstrap_servers="localhost:9092", topic="counts")

counts.writeStream.outputMode("update").foreachBatch(write).option("checkpointLocation", …).start()
"""

from typing import TYPE_CHECKING

from ottla.client.errors import WrongState

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

_FORMAT = "ottla"
_QUERY_ID = "sql.streaming.queryId"
_RUN_ID = "spark.jobGroup.id"

# What this process has written last under each transactional id: which batch, of which run of which query.
_written: dict[str, tuple[str | None, str, int]] = {}


def write_batch(df: "DataFrame", batch_id: int, **options: object) -> None:
    """Write a micro-batch in one transaction, unless an earlier attempt at it has.

    Options are those of the format `ottla`; in keywords dots may be underscores, as in `kafka_bootstrap_servers`.
    Several writes of one batch need a `transactionalId` each, unless their `topic` tells them apart.
    """
    named = {_option(name): str(value) for name, value in options.items() if value is not None}
    small = {name.lower(): value for name, value in named.items()}
    context = df.sparkSession.sparkContext
    query_id = small.get("queryid") or context.getLocalProperty(_QUERY_ID)
    if query_id is None:
        hint = 'call it from foreachBatch; elsewhere use df.write.format("ottla")'
        raise WrongState("write_batch: no streaming query runs here", hint=hint)
    topic = small.get("topic")
    name = small.get("transactionalid") or f"ottla-{query_id}" + (f"-{topic}" if topic else "")
    this = (context.getLocalProperty(_RUN_ID), query_id, batch_id)
    exactly_once = small.get("guarantee", "exactly-once") == "exactly-once"
    if exactly_once and _written.get(name) == this:
        # It would be taken for a replay, and its rows would be missing.
        hint = "give each of them an option transactionalId of its own"
        raise WrongState(f"write_batch: batch {batch_id} was written as {name} before", hint=hint)
    writer = df.write.format(_FORMAT).options(**named)
    if exactly_once:
        writer = writer.options(queryId=query_id, batchId=str(batch_id), transactionalId=name)
    writer.mode("append").save()
    _written[name] = this


def each_batch(**options: object) -> "Callable[[DataFrame, int], None]":
    """Return a function for `foreachBatch` that writes each micro-batch once, with these options."""

    def write(df: "DataFrame", batch_id: int) -> None:
        write_batch(df, batch_id, **options)

    return write


def _option(name: str) -> str:
    return name.replace("_", ".") if name.startswith("kafka_") else name
