"""What becomes of a batch that was answered, or was not in time.

    no error                    it has ended
    too large, many records     it is split, and its parts are sent
    an error that may pass      it is sent again after a pause, before what follows it
    any other                   it has failed, and with it, perhaps, the transaction

S1  A batch that has ended already, because its time was up, changes nothing but what is known of numbers.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from ottla.client.errors import ClientError, RecordTooLarge, TimedOut, refused
from ottla.client.producer.accumulator import Accumulator
from ottla.client.producer.batch import Batch
from ottla.client.producer.identity import Identity
from ottla.client.producer.tally import Statistics
from ottla.client.producer.terms import Terms
from ottla.client.producer.transaction import FATAL, Transaction
from ottla.wire.batch import BATCH_HEADER_SIZE
from ottla.wire.errors import ErrorCode

# What was known of a partition or its leader was wrong.
STALE = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
# After these the broker may have the batch all the same: it may have lost the lead after it wrote it (KAFKA-13574).
_DOUBTFUL = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)


def concurrent_pause(attempts: int) -> float:
    """How long to wait, in seconds, for the transaction before to be complete: it is about to be."""
    return min(0.0025 * (1 << min(attempts, 8)), 0.02)


class RecordError(Protocol):
    """Which record of a batch a broker complains of."""

    batch_index: int
    batch_index_error_message: str | None


class Answer:
    """What a broker has said of one batch, or what stands for it when it said nothing."""

    __slots__ = (
        "append_time",
        "base_offset",
        "code",
        "error",
        "log_start_offset",
        "message",
        "record_errors",
    )

    def __init__(
        self,
        code: ErrorCode,
        base_offset: int = -1,
        append_time: int = -1,
        log_start_offset: int = -1,
        message: str | None = None,
        record_errors: Sequence[RecordError] = (),
        error: ClientError | None = None,
    ) -> None:
        self.code = code
        self.base_offset = base_offset
        self.append_time = append_time
        self.log_start_offset = log_start_offset
        self.message = message
        self.record_errors = record_errors
        self.error = error


class Settlement:
    """Settles batches for one producer."""

    def __init__(
        self,
        terms: Terms,
        accumulator: Accumulator,
        identity: Identity | None,
        transaction: Transaction | None,
        statistics: Statistics,
        pause: Callable[[int], float],
    ) -> None:
        """`pause(attempts)` is how long to wait before the next attempt, in seconds."""
        self._terms = terms
        self._accumulator = accumulator
        self._identity = identity
        self._transaction = transaction
        self._statistics = statistics
        self._pause = pause

    def settle(self, batch: Batch, answer: Answer, now: float) -> None:
        """Act on an answer to a batch that was in flight."""
        lane, code = batch.lane, answer.code
        lane.in_flight -= 1
        batch.is_doubtful = batch.is_doubtful or code in _DOUBTFUL
        if batch.done:
            if code is ErrorCode.NONE and self._identity is not None:
                self._identity.completed(lane, batch, answer.base_offset)
        elif code is ErrorCode.NONE:
            self._complete(batch, answer.base_offset, answer.append_time)
        elif code is ErrorCode.MESSAGE_TOO_LARGE and batch.count > 1:
            self._split(batch)
        elif self._may_retry(batch, answer, now):
            batch.attempts += 1
            pause = self._pause(batch.attempts)
            if code is ErrorCode.CONCURRENT_TRANSACTIONS:
                pause = min(pause, concurrent_pause(batch.attempts))
            batch.retry_at = now + pause
            self._statistics.batches_retried += 1
            lane.put_back(batch)
        elif code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            # The broker has it, but does not remember where.
            self._complete(batch, -1, -1)
        else:
            self.fail(batch, _error(batch, answer), code, answer=answer)
        self._accumulator.schedule.poke(lane, now)

    def settle_all(self, batches: Iterable[Batch], answer: Answer, now: float) -> None:
        """Act on what concerns several batches."""
        for batch in batches:
            self.settle(batch, answer, now)

    def _may_retry(self, batch: Batch, answer: Answer, now: float) -> bool:
        terms = self._terms
        if batch.created_at + terms.delivery_s <= now or batch.attempts >= terms.retries:
            return False
        if self._identity is None:
            return answer.code.retriable
        return self._identity.may_retry(batch.lane, batch, answer.code, answer.log_start_offset)

    def _complete(self, batch: Batch, base_offset: int, append_time: int) -> None:
        if self._identity is not None:
            self._identity.completed(batch.lane, batch, base_offset)
        self._statistics.records_sent += batch.count
        self._accumulator.end(batch, None, base_offset, append_time)

    def _split(self, batch: Batch) -> None:
        half = BATCH_HEADER_SIZE + (batch.plain_bytes - BATCH_HEADER_SIZE + 1) // 2
        size = self._terms.batch_bytes if batch.plain_bytes > self._terms.batch_bytes else half
        # What compression has promised for the topic, it did not keep.
        batch.lane.road.ratio = max(batch.lane.road.ratio, 1.0)
        parts = batch.split(size)
        lane = batch.lane
        if self._identity is not None:
            lane.sequences.replace(batch, parts)
            for part in parts:
                lane.put_back(part)
        else:
            lane.batches.extendleft(reversed(parts))
        self._statistics.batches_split += 1

    def fail(
        self,
        batch: Batch,
        error: ClientError,
        code: ErrorCode | None,
        *,
        answer: Answer | None = None,
    ) -> None:
        """End a batch, which is in no lane any more, with an error."""
        if self._identity is not None:
            self._identity.failed(batch.lane, batch, code, refused=code is not None and not batch.is_doubtful)
            if code in FATAL:
                self._identity.fatal = error
        if self._transaction is not None:
            self._transaction.batch_failed(error, code)
        self._statistics.records_failed += batch.count
        self._accumulator.end(batch, error, errors=_record_errors(batch, answer))

    def expire(self, now: float) -> None:
        """End what has had its time."""
        for batch in self._accumulator.pending.overdue(now):
            self._accumulator.schedule.drop(batch)
            age = now - batch.created_at
            message = f"{batch.count} records for {batch.lane} were not delivered within {age:.3f} s"
            hint = "check that the brokers can be reached, or raise delivery.timeout.ms"
            self._statistics.batches_expired += 1
            self.fail(batch, TimedOut(message, hint=hint), None)


def _error(batch: Batch, answer: Answer) -> ClientError:
    if answer.error is not None:
        return answer.error
    if answer.code is ErrorCode.MESSAGE_TOO_LARGE:
        error = RecordTooLarge(
            f"{batch.lane}: the broker does not take a record of {batch.plain_bytes} bytes",
            hint="raise max.message.bytes of the topic, or send smaller records",
        )
        error.__cause__ = refused(answer.code, answer.message, about=str(batch.lane))
        return error
    return refused(answer.code, answer.message, about=str(batch.lane))


def _record_errors(batch: Batch, answer: Answer | None) -> dict[int, ClientError] | None:
    """Return the records' own errors; the others were in bad company."""
    if answer is None or not answer.record_errors:
        return None
    about = str(batch.lane)
    innocent = ClientError(f"{about}: the record was in a batch with one that the broker refused")
    errors: dict[int, ClientError] = dict.fromkeys(range(batch.count), innocent)
    code = answer.code if len(answer.record_errors) == 1 else ErrorCode.INVALID_RECORD
    for each in answer.record_errors:
        errors[each.batch_index] = refused(
            code, each.batch_index_error_message or answer.message, about=about
        )
    return errors
