"""Completes, retries, splits or fails a batch after a produce response or a timeout.

    no error                    it is complete
    too large, many records     it is split, and its parts are sent
    retriable error             it is sent again after a pause, before the batches behind it
    any other error             it has failed, and the transaction may have to abort

S1  A response for a batch that has already expired only updates the sequence numbers.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from ottla.client.errors import ClientError, RecordTooLarge, TimedOut, refused
from ottla.client.producer.accumulator import Accumulator
from ottla.client.producer.batch import ProducerBatch
from ottla.client.producer.config import ProducerConfig
from ottla.client.producer.identity import ProducerIdentity
from ottla.client.producer.statistics import Statistics
from ottla.client.producer.transaction import FATAL, ProducerTransaction
from ottla.wire.batch import BATCH_HEADER_SIZE
from ottla.wire.errors import ErrorCode

# Errors that mean that the metadata of a partition is out of date.
STALE_METADATA = frozenset(
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
# After these errors the broker may have stored the batch: it may have lost its leadership after it (KAFKA-13574).
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


def concurrent_transactions_pause(attempts: int) -> float:
    """Return how many seconds to wait until the previous transaction is complete. That is soon."""
    return min(0.0025 * (1 << min(attempts, 8)), 0.02)


class RecordError(Protocol):
    """A record of a batch that the broker has refused."""

    batch_index: int
    batch_index_error_message: str | None


class BatchResponse:
    """The response of a broker for one batch, or the error that replaces a missing one."""

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


class BatchCompletion:
    """Completes the batches of one producer."""

    def __init__(
        self,
        config: ProducerConfig,
        accumulator: Accumulator,
        identity: ProducerIdentity | None,
        transaction: ProducerTransaction | None,
        statistics: Statistics,
        pause: Callable[[int], float],
    ) -> None:
        """`pause(attempts)` returns how many seconds to wait before the next attempt."""
        self._config = config
        self._accumulator = accumulator
        self._identity = identity
        self._transaction = transaction
        self._statistics = statistics
        self._pause = pause

    def handle_response(self, batch: ProducerBatch, response: BatchResponse, now: float) -> None:
        """Act on the response for a batch that was in flight."""
        queue, code = batch.queue, response.code
        queue.in_flight -= 1
        batch.may_be_stored = batch.may_be_stored or code in _DOUBTFUL
        if batch.done:
            if code is ErrorCode.NONE and self._identity is not None:
                self._identity.completed(queue, batch, response.base_offset)
        elif code is ErrorCode.NONE:
            self._complete(batch, response.base_offset, response.append_time)
        elif code is ErrorCode.MESSAGE_TOO_LARGE and batch.count > 1:
            self._split(batch)
        elif self._may_retry(batch, response, now):
            batch.attempts += 1
            pause = self._pause(batch.attempts)
            if code is ErrorCode.CONCURRENT_TRANSACTIONS:
                pause = min(pause, concurrent_transactions_pause(batch.attempts))
            batch.retry_at = now + pause
            self._statistics.batches_retried += 1
            queue.put_back(batch)
        elif code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            # The broker has stored it, but does not know its offset any more.
            self._complete(batch, -1, -1)
        else:
            self.fail(batch, _error(batch, response), code, response=response)
        self._accumulator.schedule.recheck(queue, now)

    def handle_all(self, batches: Iterable[ProducerBatch], response: BatchResponse, now: float) -> None:
        """Act on one response for several batches."""
        for batch in batches:
            self.handle_response(batch, response, now)

    def _may_retry(self, batch: ProducerBatch, response: BatchResponse, now: float) -> bool:
        config = self._config
        if batch.created_at + config.delivery_s <= now or batch.attempts >= config.retries:
            return False
        if self._identity is None:
            return response.code.retriable
        return self._identity.may_retry(batch.queue, batch, response.code, response.log_start_offset)

    def _complete(self, batch: ProducerBatch, base_offset: int, append_time: int) -> None:
        if self._identity is not None:
            self._identity.completed(batch.queue, batch, base_offset)
        self._statistics.records_sent += batch.count
        self._accumulator.end(batch, None, base_offset, append_time)

    def _split(self, batch: ProducerBatch) -> None:
        half = BATCH_HEADER_SIZE + (batch.plain_bytes - BATCH_HEADER_SIZE + 1) // 2
        size = self._config.batch_bytes if batch.plain_bytes > self._config.batch_bytes else half
        # The expected compression ratio of the topic was too good.
        batch.queue.topic_queues.ratio = max(batch.queue.topic_queues.ratio, 1.0)
        parts = batch.split(size)
        queue = batch.queue
        if self._identity is not None:
            queue.sequences.replace(batch, parts)
            for part in parts:
                queue.put_back(part)
        else:
            queue.batches.extendleft(reversed(parts))
        self._statistics.batches_split += 1

    def fail(
        self,
        batch: ProducerBatch,
        error: ClientError,
        code: ErrorCode | None,
        *,
        response: BatchResponse | None = None,
    ) -> None:
        """Fail a batch that is no longer in a queue."""
        if self._identity is not None:
            self._identity.failed(
                batch.queue, batch, code, refused=code is not None and not batch.may_be_stored
            )
            if code in FATAL:
                self._identity.fatal = error
        if self._transaction is not None:
            self._transaction.batch_failed(error, code)
        self._statistics.records_failed += batch.count
        self._accumulator.end(batch, error, errors=_record_errors(batch, response))

    def expire(self, now: float) -> None:
        """Fail the batches that have reached delivery.timeout.ms."""
        for batch in self._accumulator.incomplete.overdue(now):
            self._accumulator.schedule.drop(batch)
            age = now - batch.created_at
            message = f"{batch.count} records for {batch.queue} were not delivered within {age:.3f} s"
            hint = "check that the brokers can be reached, or raise delivery.timeout.ms"
            self._statistics.batches_expired += 1
            self.fail(batch, TimedOut(message, hint=hint), None)


def _error(batch: ProducerBatch, response: BatchResponse) -> ClientError:
    if response.error is not None:
        return response.error
    if response.code is ErrorCode.MESSAGE_TOO_LARGE:
        error = RecordTooLarge(
            f"{batch.queue}: the broker does not take a record of {batch.plain_bytes} bytes",
            hint="raise max.message.bytes of the topic, or send smaller records",
        )
        error.__cause__ = refused(response.code, response.message, about=str(batch.queue))
        return error
    return refused(response.code, response.message, about=str(batch.queue))


def _record_errors(batch: ProducerBatch, response: BatchResponse | None) -> dict[int, ClientError] | None:
    """Return an error for each record: its own, or one that names the refused record beside it."""
    if response is None or not response.record_errors:
        return None
    about = str(batch.queue)
    other_error = ClientError(f"{about}: the record was in a batch with one that the broker refused")
    errors: dict[int, ClientError] = dict.fromkeys(range(batch.count), other_error)
    code = response.code if len(response.record_errors) == 1 else ErrorCode.INVALID_RECORD
    for each in response.record_errors:
        errors[each.batch_index] = refused(
            code, each.batch_index_error_message or response.message, about=about
        )
    return errors
