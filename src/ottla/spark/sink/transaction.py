"""One transaction for one micro-batch, begun and ended by the driver.

    begin   InitProducerId     ends what a former driver left open, and fences it
    ask     the marker         is the batch there? then there is nothing to do
    write   the batches of all tasks
    mark    TxnOffsetCommit    the marker, and the offsets of the source where they are known
    end     EndTxn             from here on the batch is there, all of it

X1  The marker is read after the beginning: whoever could have changed it is fenced by then. Whoever has written the
    batch before, and was not fenced since, need neither begin nor ask (`session`).
X2  Whoever is fenced begins again, and so asks the marker again: two drivers of one query write a batch once. Without
    a marker that holds until the end is asked for, and no longer.
X3  What is committed are the messages of tasks that Spark has accepted, one for each. A task that failed, was tried
    again or was overtaken by its double has nothing in it (E1 of `early`, where a batch is begun before).
X4  The end is asked for with one request until it is answered, so however often it arrives it happens once. If the
    time for that runs out, nobody knows; the marker tells whoever comes next.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ottla.client.admin.offsets import Offsets, OffsetSpec
from ottla.client.errors import ClientError, Fenced, MustAbort, Refused, TimedOut
from ottla.client.record import TopicPartition
from ottla.client.settings.resolve import ClientSettings
from ottla.spark.connection import Connection, connected, known
from ottla.spark.sink.carrier import Carrier, Ends
from ottla.spark.sink.checkpoint import here
from ottla.spark.sink.expiry import Decision, Plan, decide
from ottla.spark.sink.marker import Marker, marked
from ottla.spark.sink.options import SinkOptions
from ottla.spark.sink.refusal import LOGGER, NotWritten, PerhapsWritten
from ottla.spark.sink.session import Kept, sessions_of
from ottla.spark.sink.spool import Spool
from ottla.wire.errors import ErrorCode

_TRIES = 3
_NOBODY_ELSE = (
    "let one query at a time have this transactionalId; if it is the only one, raise transactionTimeout"
)


@dataclass(frozen=True, slots=True)
class Undertaking:
    """What is to be written, in whose name."""

    transactional_id: str
    marker: Marker | None
    spools: Sequence[Spool]
    source: Mapping[str, Mapping[TopicPartition, int]]
    """What is known of the source: offsets by the ids of their topics."""
    plan: Plan
    """What is known of when the batch was planned."""
    tokens: Sequence[str] = ()
    """Which attempts of tasks the spools are of."""
    topic: str | None = None
    """Whose first partition has the marker of a batch without rows, where nothing of the source is known."""

    def without_rows(self) -> "Undertaking":
        """Return what is left where the rows are written, and the marker is not."""
        topics = (each.topic for spool in self.spools for each in spool.sealed)
        return replace(self, spools=(), topic=self.topic or next(topics, None))


def write_once(options: SinkOptions, undertaking: Undertaking) -> bool:
    """Write all of it in one transaction, unless the marker says that it is written; whether it was not."""
    settings = options.settings(undertaking.transactional_id, options.timeout_ms)
    connection = connected(options.settings())
    return connection.run(_write_once(settings, connection, undertaking, options.checkpoint))


def withdraw(options: SinkOptions, transactional_id: str) -> None:
    """Abort what was begun early of a batch that has failed."""
    connection = known(options.settings())
    if connection is not None:
        settings = options.settings(transactional_id, options.timeout_ms)
        connection.run(sessions_of(connection).withdraw(settings))


async def _write_once(
    settings: ClientSettings, connection: Connection, undertaking: Undertaking, checkpoint: str | None
) -> bool:
    name, marker, sessions = undertaking.transactional_id, undertaking.marker, sessions_of(connection)
    kept = await sessions.take(settings, marker)
    if kept is not None:
        try:
            if not await _go_on(kept, connection, undertaking):
                sessions.was_in_vain(settings)
        except (PerhapsWritten, Fenced) as error:
            await kept.close()
            if isinstance(error, PerhapsWritten):
                raise
            sessions.is_shared(settings)
        except ClientError as error:
            # It may have been idle for too long, say. From the beginning it fails again, or it does not.
            await kept.close()
            LOGGER.info("%s begins again: %s", name, error)
        except BaseException:
            await kept.close()
            raise
        else:
            await sessions.keep(settings, kept.carrier, marker, checkpoint)
            return True
    for left in reversed(range(_TRIES)):
        carrier = Carrier(settings, connection.cluster)
        try:
            written = await _begin_and_write(carrier, connection, undertaking)
        except Fenced as error:
            await carrier.close()
            if not left:
                message = f"{name} was taken over by another writer {_TRIES} times"
                raise NotWritten(message, hint=_NOBODY_ELSE) from error
            LOGGER.warning("%s was taken over by another writer, and is taken back", name)
        except BaseException:
            await carrier.close()
            raise
        else:
            await sessions.keep(settings, carrier, marker, checkpoint)
            return written
    raise AssertionError("the last try returns or raises")


async def _begin_and_write(carrier: Carrier, connection: Connection, undertaking: Undertaking) -> bool:
    """Write it, if it is not written, as the one producer of the transactional id. Raises Fenced if it is not."""
    name, marker = undertaking.transactional_id, undertaking.marker
    await begin(carrier)
    if marker is not None:
        decision = await decide(connection, name, marker, undertaking.plan)
        if decision is Decision.MARK:
            await _write(carrier, connection, undertaking.without_rows())
        if decision is not Decision.WRITE:
            return False
    await _write(carrier, connection, undertaking)
    return True


async def _go_on(kept: Kept, connection: Connection, undertaking: Undertaking) -> bool:
    """Write the next batch, or what is left to do of it; whether what was begun early, if anything, was of use."""
    carrier, early, marker = kept.carrier, kept.early, undertaking.marker
    if early is not None and marker is not None and early.has(marker, undertaking.tokens):
        ends = await early.settled()
        if not early.source:
            await carrier.offsets(kept.name, marked(marker, _behind(ends)))
        await end(carrier, known_again=True)
        return True
    in_vain = early is not None and early.is_begun
    if early is not None:
        await early.undo()
    await _write(carrier, connection, undertaking)
    return not in_vain


async def _write(carrier: Carrier, connection: Connection, undertaking: Undertaking) -> None:
    name, marker = undertaking.transactional_id, undertaking.marker
    batches = (batch for spool in undertaking.spools for batch in spool.batches())
    carrier.transactor.begin()
    try:
        source = await here(connection.cluster, undertaking.source)
        if marker is None:
            await carrier.carry(batches)
        elif source:
            # Neither waits for the other.
            async with asyncio.TaskGroup() as both:
                both.create_task(carrier.carry(batches))
                both.create_task(carrier.offsets(name, marked(marker, source)))
        else:
            ends = _behind(await carrier.carry(batches)) or await end_of(connection, undertaking.topic)
            if ends:
                await carrier.offsets(name, marked(marker, ends))
    except BaseExceptionGroup as errors:
        await abort(carrier, errors.exceptions[0])
        raise errors.exceptions[0] from None
    except BaseException as error:
        await abort(carrier, error)
        raise
    await end(carrier, known_again=marker is not None)


def _behind(ends: Ends) -> Ends:
    """Behind the last record comes the mark of the transaction itself."""
    return {place: end + 1 for place, end in ends.items()}


async def end_of(connection: Connection, topic: str | None) -> Ends:
    """Return the end of the first partition of a topic, if there is one: a place for a marker."""
    if topic is None:
        return {}
    place = TopicPartition(topic, 0)
    try:
        found = await Offsets(connection.desk).list({place: OffsetSpec.LATEST})
    except ClientError as error:
        LOGGER.info("a batch without rows has no marker: %s", error)
        return {}
    return {place: found[place].offset}


async def begin(carrier: Carrier) -> None:
    """Become the one producer of the transactional id."""
    try:
        await carrier.transactor.initialize()
    except Refused as error:
        if error.code is not ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            raise
        raise NotWritten(
            f"the brokers do not allow a transaction of {carrier.transaction_s:g} s",
            hint="lower the option transactionTimeout, or raise transaction.max.timeout.ms of the brokers",
        ) from error


async def end(carrier: Carrier, *, known_again: bool) -> None:
    """Commit. After Fenced and PerhapsWritten the outcome is not known; `known_again` says that it can be asked for."""
    try:
        await carrier.commit()
    except MustAbort as error:
        await abort(carrier, error)
        raise error.__cause__ or error from None
    except TimedOut as error:
        hint = "start the query again: it finds out" if known_again else "look before you write it again"
        raise PerhapsWritten(f"nobody answered whether the rows are written: {error}", hint=hint) from error
    except Fenced as error:
        if known_again:
            raise
        raise PerhapsWritten(
            f"another writer came between: {error}", hint="look before you write it again"
        ) from error
    except ClientError as error:
        if known_again:
            raise
        # The coordinator was asked, and may have done it, whatever became of its answer.
        raise PerhapsWritten(
            f"the end of the transaction failed: {error}", hint="look before you write it again"
        ) from error


async def abort(carrier: Carrier, because: BaseException) -> None:
    """Leave nothing open that would keep readers waiting; if that fails, the next beginning or the time does it."""
    if isinstance(because, Fenced):
        return
    try:
        await carrier.transactor.abort()
    except ClientError as error:
        LOGGER.warning("a transaction was left open: %s", error)
