"""A transaction for each task, for those who want nothing of their driver: `portable=true`.

Each task has a transactional id of its own, and its marker says which micro-batch it has written last. Whoever
begins with that id fences whoever had it, and so of two attempts of one task only one commits.

B1  Rows are written once, if a task that is run again has the same rows. The source sees to that, whose batches are
    divided as their offsets say (S1 of `source.following`), and Spark, which keeps the number of its shuffle
    partitions: but for `spark.sql.adaptive.streaming.stateless.enabled`, and a query that repartitions otherwise.
B2  A micro-batch is not atomic: readers may see what one task has written before another has.
"""

from typing import TYPE_CHECKING

from ottla.spark.connection import Connection, connected
from ottla.spark.sink.carrier import Carrier, Ends
from ottla.spark.sink.encoding import Sealed
from ottla.spark.sink.expiry import Decision, Plan, decide
from ottla.spark.sink.marker import Marker, marked
from ottla.spark.sink.message import Written
from ottla.spark.sink.options import SinkOptions
from ottla.spark.sink.task import Assignment, chunks, encoder
from ottla.spark.sink.transaction import abort, begin, end, end_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa


def write_alone(options: SinkOptions, name: str | None, rows: "Iterator[pa.RecordBatch]") -> Written:
    """Write the rows of a task, in its own transaction, unless they are written."""
    task = Assignment()
    marker = task.marker(options)
    own = f"{name or f'ottla-{options.query_id or task.query_id}'}-{task.part}"
    connection = connected(options.settings())
    lone: Lone | None = None
    try:
        for batches in chunks(encoder(options, connection).encode(rows)):
            if lone is None:
                lone = connection.run(Lone.begin(options, connection, own, marker))
            connection.run(lone.take(batches))
    except BaseException as error:
        # Rows may fail to come, too, and their transaction would keep readers waiting.
        if lone is not None:
            connection.run(lone.give_up(error))
        raise
    if lone is None and marker is not None and options.topic is not None:
        # A task without rows needs no marker where the time of planning is known (M4 of `expiry`).
        if not Plan.of(options).is_known(marker.batch_id):
            lone = connection.run(Lone.begin(options, connection, own, marker))
    if lone is not None:
        connection.run(lone.end())
    return Written()


class Lone:
    """The transaction of one task; every call is made on the loop."""

    def __init__(
        self, carrier: Carrier, connection: Connection, name: str, marker: Marker | None, topic: str | None
    ) -> None:
        self._carrier = carrier
        self._connection = connection
        self._topic = topic
        self._name = name
        self._marker = marker
        self._ends: Ends = {}
        self._decision = Decision.WRITE

    @classmethod
    async def begin(
        cls, options: SinkOptions, connection: Connection, name: str, marker: Marker | None
    ) -> "Lone":
        """Fence other attempts of the task, and find out whether one of them was done."""
        carrier = Carrier(options.settings(name, options.timeout_ms), connection.cluster)
        made = cls(carrier, connection, name, marker, options.topic)
        try:
            await begin(made._carrier)
            if marker is not None:
                made._decision = await decide(connection, name, marker, Plan.of(options))
            if made._decision is not Decision.NOTHING:
                made._carrier.transactor.begin()
        except BaseException:
            await made._carrier.close()
            raise
        return made

    async def take(self, batches: list[Sealed]) -> None:
        """Write some of its batches, unless they are written; those that come again are read all the same."""
        if self._decision is not Decision.WRITE:
            self._topic = self._topic or batches[0].topic
            return
        self._ends |= await self._carrier.carry(batches)

    async def give_up(self, because: BaseException) -> None:
        """Abort, and close."""
        if self._decision is not Decision.NOTHING:
            await abort(self._carrier, because)
        await self._carrier.close()

    async def end(self) -> None:
        """Commit."""
        try:
            if self._decision is not Decision.NOTHING:
                await self._mark()
                await end(self._carrier, known_again=self._marker is not None)
        finally:
            await self._carrier.close()

    async def _mark(self) -> None:
        if self._marker is None:
            return
        try:
            ends = {place: end + 1 for place, end in self._ends.items()}
            ends = ends or await end_of(self._connection, self._topic)
            if ends:
                await self._carrier.offsets(self._name, marked(self._marker, ends))
        except BaseException as error:
            await abort(self._carrier, error)
            raise
