"""Writing from `foreachBatch`, which is how a query in update or complete mode writes, and one with several sinks.

def write(df, batch_id):
    write_batch(df, batch_id, kafka_bootstrap_servers="localhost:9092", topic="counts")

counts.writeStream.outputMode("update").foreachBatch(write).option("checkpointLocation", …).start()
"""

from typing import TYPE_CHECKING, Any

from ottla.client.errors import WrongState
from ottla.spark.sink.refusal import LOGGER
from ottla.world.clock import RealClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

_FORMAT = "ottla"
_QUERY_ID = "sql.streaming.queryId"
_RUN_ID = "spark.jobGroup.id"

# What this process has written last under each transactional id: which batch, of which run of which query.
_written: dict[str, tuple[str | None, str, int]] = {}
# When that was. Whatever batch comes next in the same run was planned later, and Spark is asked only after a rest.
_written_ms: dict[str, int] = {}
_REST_MS = 30_000


def write_batch(df: "DataFrame", batch_id: int, **options: object) -> None:
    """Write a micro-batch in one transaction, unless it was written before.

    Options are those of the format `ottla`; in keywords dots may be underscores, as in `kafka_bootstrap_servers`.
    Several writes of one batch need a `transactionalId` each, unless their `topic` is different.
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
        before = _written.get(name)
        planned: int | None = _written_ms.get(name, 0)
        is_next = before is not None and before[:2] == this[:2] and before[2] < batch_id
        if not is_next or RealClock().now_ms() - _written_ms[name] > _REST_MS:
            planned = _planned_ms(df.sparkSession, context.getLocalProperty(_QUERY_ID) or query_id, batch_id)
        if planned is not None:
            writer = writer.options(plannedMs=str(planned))
    writer.mode("append").save()
    _written[name], _written_ms[name] = this, RealClock().now_ms()


def _planned_ms(session: "SparkSession", query_id: str, batch_id: int) -> int | None:
    """Return when Spark has planned a batch of a query that runs here, from its own log of offsets; None if unknown."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    # A part of Spark that is not public, so whatever fails leaves the question open (M3 of `expiry`).
    try:
        java: Any = session
        key = java._jvm.java.util.UUID.fromString(query_id)
        query = java._jsparkSession.sharedState().activeStreamingQueries().get(key)
        return int(query.offsetLog().get(batch_id).get().metadataOpt().get().batchTimestampMs())
    except (Py4JError, PySparkException, AttributeError, TypeError, ValueError) as error:
        LOGGER.info("when batch %d of query %s was planned is not known: %s", batch_id, query_id, error)
        return None


def each_batch(**options: object) -> "Callable[[DataFrame, int], None]":
    """Return a function for `foreachBatch` that writes each micro-batch once, with these options."""

    def write(df: "DataFrame", batch_id: int) -> None:
        write_batch(df, batch_id, **options)

    return write


def _option(name: str) -> str:
    return name.replace("_", ".") if name.startswith("kafka_") else name
