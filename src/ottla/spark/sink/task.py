"""The work of a task: its rows are encoded, and then handed to the driver, or written on the spot.

Spark may run a task several times, one after another or two at a time. Handing over has no consequences but for the
message that Spark accepts in the end.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pyspark import TaskContext

from ottla.client.errors import ClientError
from ottla.client.producer.config import ProducerConfig
from ottla.spark.connection import Connection, connected
from ottla.spark.sink.carrier import Carrier, Ends
from ottla.spark.sink.early import tell
from ottla.spark.sink.encoding import Encoder, Sealed
from ottla.spark.sink.marker import Marker
from ottla.spark.sink.message import Spooled, Written
from ottla.spark.sink.options import SinkOptions
from ottla.spark.sink.partitioning import Partitioning, Target
from ottla.spark.sink.spool import Folder, Spool
from ottla.wire.errors import ErrorCode
from ottla.world.clock import RealClock
from ottla.world.entropy import RealEntropy

if TYPE_CHECKING:
    import pyarrow as pa

_QUERY_ID, _BATCH_ID = "sql.streaming.queryId", "streaming.sql.batchId"
_CHUNK_BYTES = 4 << 20

_plain_carriers: "WeakKeyDictionary[Connection, Carrier]" = WeakKeyDictionary()


class Assignment:
    """Which part of which micro-batch this task is, as Spark tells it; a job that is no stream is of no query."""

    def __init__(self) -> None:
        context = TaskContext.get()
        assert context is not None, "rows are written by tasks"
        self.part: int = context.partitionId()
        self.attempt_id: int = context.taskAttemptId()
        self.query_id: str | None = context.getLocalProperty(_QUERY_ID)
        batch_id = context.getLocalProperty(_BATCH_ID)
        self.batch_id = None if batch_id is None else int(batch_id)

    def marker(self, options: SinkOptions) -> Marker | None:
        """Return what marks the micro-batch, which the options of `write_batch` may name."""
        query_id = options.query_id or self.query_id
        batch_id = self.batch_id if options.batch_id is None else options.batch_id
        return None if query_id is None or batch_id is None else Marker(query_id, batch_id)


def spool(
    options: SinkOptions, name: str | None, folder: Folder, rows: "Iterator[pa.RecordBatch]"
) -> Spooled:
    """Encode the rows of a task, and hand them over."""
    task = Assignment()
    batches = encoder(options, connected(options.settings())).encode(rows)
    made = Spool.of(batches, folder, str(task.attempt_id))
    token = f"{folder.name}/{task.attempt_id}"
    marker = task.marker(options)
    if marker is not None:
        tell(name or f"ottla-{marker.query_id}", marker, task.part, token, made)
    return Spooled(task.query_id, made, token)


def plain(options: SinkOptions, rows: "Iterator[pa.RecordBatch]") -> Written:
    """Write the rows of a task as they come; a task that is tried again writes them again."""
    settings = options.settings()
    connection = connected(settings)

    async def carry(batches: list[Sealed]) -> Ends:
        carrier = _plain_carriers.get(connection)
        if carrier is None:
            carrier = _plain_carriers[connection] = Carrier(settings, connection.cluster)
        try:
            return await carrier.carry(batches)
        except ClientError:
            del _plain_carriers[connection]
            await carrier.close()
            raise

    for batches in chunks(encoder(options, connection).encode(rows)):
        connection.run(carry(batches))
    return Written()


def chunks(batches: Iterator[Sealed]) -> Iterator[list[Sealed]]:
    """Yield batches in lists that are worth a trip."""
    some: list[Sealed] = []
    size = 0
    for batch in batches:
        some.append(batch)
        size += len(batch.filled.buffer)
        if size >= _CHUNK_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some


def encoder(options: SinkOptions, connection: Connection) -> Encoder:
    """Return what encodes with these options."""
    terms, clock = ProducerConfig.of(options.settings()), RealClock()

    def find(name: str) -> Target:
        # What is known may be looked at from here, too: asking the loop costs two changes of threads.
        topic = connection.cluster.topics.get(name)
        if topic is None or topic.error is not ErrorCode.NONE or not topic.leaders:
            topic = connection.run(connection.cluster.topic(name, terms.block_s * 1000))
        leaders = sorted(topic.leaders.copy().items())
        return Target(name, len(leaders), tuple(number for number, leader in leaders if leader.node >= 0))

    return Encoder(
        terms,
        options.batch_bytes,
        options.topic,
        Partitioning(RealEntropy(), ignores_keys=terms.ignores_keys),
        find,
        lambda: clock.time_ns() // 1_000_000,
    )
