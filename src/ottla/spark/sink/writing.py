"""What writers of streams and of single jobs have in common: which way rows go, and what the driver does in the end."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import WriterCommitMessage

from ottla.spark.settling import settle
from ottla.spark.sink.marker import Marker
from ottla.spark.sink.message import Spooled
from ottla.spark.sink.options import SinkOptions
from ottla.spark.sink.refusal import NotWritten
from ottla.spark.sink.spool import Folder, forget
from ottla.world.disk import RealDisk

if TYPE_CHECKING:
    import pyarrow as pa

Messages = Sequence[WriterCommitMessage | None]


def write(
    options: SinkOptions, name: str | None, folder: Folder, rows: "Iterator[pa.RecordBatch]"
) -> WriterCommitMessage:
    """Do the work of a task; `name` is the transactional id as far as the driver knows it."""
    # Planning and committing need none of it, and are waited for.
    from ottla.spark.sink import portable, task

    try:
        if not options.is_exactly_once:
            return task.plain(options, rows)
        if options.is_portable:
            return portable.write_alone(options, name, rows)
        return task.spool(options, name, folder, rows)
    finally:
        settle()


def commit(options: SinkOptions, name: str | None, messages: Messages, batch_id: int | None) -> None:
    """Write what the tasks have handed over, in one transaction."""
    from ottla.spark.sink.checkpoint import source_offsets
    from ottla.spark.sink.expiry import Plan
    from ottla.spark.sink.transaction import Undertaking, write_once

    spooled = [each for each in messages if isinstance(each, Spooled)]
    if not spooled:
        return
    spools = [each.spool for each in spooled if each.spool.sealed]
    query_id = options.query_id or spooled[0].query_id
    if batch_id is not None and query_id is None:
        # Without it a batch could be taken for one of another query, and left out.
        raise NotWritten(
            "Spark did not tell which query this is", hint="write from foreachBatch with write_batch"
        )
    marker = None if batch_id is None or query_id is None else Marker(query_id, batch_id)
    source = {}
    if marker is not None and options.checkpoint is not None:
        source = source_offsets(RealDisk(), options.checkpoint, marker.batch_id)
    plan = Plan.of(options)
    # A batch without rows needs no marker where the time of planning is known (M4 of `expiry`).
    topic = options.topic if marker is not None and not plan.is_known(marker.batch_id) else None
    if spools or source or topic:
        tokens = [each.token for each in spooled]
        undertaking = Undertaking(name or f"ottla-{query_id}", marker, spools, source, plan, tokens, topic)
        write_once(options, undertaking)
    clear(messages)
    settle()


def abort(options: SinkOptions, name: str | None, messages: Messages) -> None:
    """Take away what tasks have left, and what was written of it early."""
    from ottla.spark.sink.transaction import withdraw

    clear(messages)
    query_id = next((each.query_id for each in messages if isinstance(each, Spooled)), None)
    if name is not None or query_id is not None:
        withdraw(options, name or f"ottla-{options.query_id or query_id}")


def clear(messages: Messages) -> None:
    """Take away what tasks have left."""
    forget(
        {
            each.spool.folder
            for each in messages
            if isinstance(each, Spooled) and each.spool.folder is not None
        }
    )
