"""The producer id and epoch of an idempotent producer, and which batches may be sent or retried (KIP-98, KIP-360).

I1  A new batch is sent only if all batches of its partition in flight have the same producer id and epoch, and if the
    outcome of all earlier batches is known. The first batch of a partition is sent alone: a broker without a state of
    this producer accepts any first sequence number, so it would accept the second batch although the first failed.
    At most five batches are in flight, over all connections, because a broker remembers only five.
I2  Batches that are retried are sent one at a time, in order. So the order is kept with up to five requests in flight.
I3  If sequence numbers are lost, a producer without transactions takes the next epoch and numbers the partition's
    batches again from 0. A producer with transactions aborts.
"""

from typing import TYPE_CHECKING

from ottla.client.producer.batch import ProducerBatch
from ottla.client.producer.partition_queue import PartitionQueue
from ottla.client.producer.sequence import EPOCH_MAX, NONE_ACKED, UNKNOWN_PRODUCER, ProducerId
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.client.errors import ClientError

# A broker finds duplicates among this many batches of a producer.
_REMEMBERED_BATCHES = 5


class ProducerIdentity:
    """The producer id of a producer, and the partitions that need new sequence numbers."""

    def __init__(self, *, transactional: bool = False) -> None:
        self._transactional = transactional
        self.producer = UNKNOWN_PRODUCER
        self.fatal: ClientError | None = None
        self._bump_wanted = False
        self._to_renumber: dict[PartitionQueue, None] = {}
        self._unresolved: dict[PartitionQueue, None] = {}

    # Sending

    def may_send(self, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        """Whether the first batch of a queue may be sent now."""
        sequences = queue.sequences
        if self.fatal is not None or not self.producer.is_known:
            return False
        if batch.has_sequence:
            return not sequences.in_flight or sequences.in_flight[0] is batch
        if sequences.in_flight and (
            sequences.last_acked == NONE_ACKED
            or sequences.producer != self.producer
            or sequences.numbered_since_oldest >= _REMEMBERED_BATCHES
        ):
            return False
        return sequences.unresolved is None

    def assign_sequence(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Set the sequence numbers of a batch that is sent for the first time."""
        if not batch.has_sequence:
            if queue.sequences.producer != self.producer:
                queue.sequences.begin(self.producer)
            queue.sequences.number(batch)

    # Outcomes

    def may_retry(
        self, queue: PartitionQueue, batch: ProducerBatch, code: ErrorCode, log_start_offset: int
    ) -> bool:
        """Whether a batch that a broker refused with this code is retried, perhaps in the next epoch."""
        sequences = queue.sequences
        if code is ErrorCode.UNKNOWN_PRODUCER_ID:
            if log_start_offset == -1 or batch.renumbered:
                return True
            if self._transactional:
                if sequences.last_acked_offset >= log_start_offset:
                    return False
                # Retention has deleted the records of this producer, and with them the broker's state of it.
                sequences.begin(self.producer)
                return True
            self._request_bump(queue)
            return True
        if code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            unresolved = sequences.unresolved
            is_first = not sequences.in_flight or sequences.in_flight[0] is batch
            if unresolved is None and (batch.renumbered or not is_first):
                # An earlier batch has failed, and is retried first.
                return True
            if not self._transactional:
                if unresolved is None or batch.base_sequence == unresolved:
                    self._request_bump(queue)
                return True
        return code.retriable

    def completed(self, queue: PartitionQueue, batch: ProducerBatch, base_offset: int) -> None:
        """Handle that the broker has stored a batch."""
        queue.sequences.acked(batch, base_offset)

    def failed(
        self, queue: PartitionQueue, batch: ProducerBatch, code: ErrorCode | None, *, refused: bool
    ) -> None:
        """Handle that a batch has failed. `refused` means that the broker has certainly not stored it."""
        sequences = queue.sequences
        if not batch.has_sequence:
            return
        sequences.remove(batch)
        if code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not self._transactional:
            self._request_bump(queue)
        elif code is ErrorCode.UNKNOWN_PRODUCER_ID:
            sequences.reset()
            self._unresolved.pop(queue, None)
        elif refused:
            if self._transactional:
                sequences.close_gap(batch)
            else:
                self._request_bump(queue)
        else:
            sequences.give_up(batch)
            self._unresolved[queue] = None

    def resolve(self) -> dict[PartitionQueue, bool]:
        """Return the queues all of whose batches now have a known outcome, and whether a sequence number was lost."""
        known: dict[PartitionQueue, bool] = {}
        for queue in tuple(self._unresolved):
            sequences = queue.sequences
            if not sequences.in_flight:
                del self._unresolved[queue]
                known[queue] = not sequences.is_next(sequences.next)
                if not known[queue]:
                    sequences.unresolved = None
                elif not self._transactional:
                    self._request_bump(queue)
        return known

    @property
    def has_unresolved(self) -> bool:
        """Whether there are queues with batches of unknown outcome."""
        return bool(self._unresolved)

    # Epochs

    def _request_bump(self, queue: PartitionQueue) -> None:
        self._bump_wanted = True
        self._to_renumber[queue] = None

    def bump(self) -> bool:
        """Take the next epoch if one was requested. Return whether it did. After the last epoch a new id is needed."""
        if not self._bump_wanted:
            return False
        self._bump_wanted = False
        if self.producer.epoch >= EPOCH_MAX:
            self.producer = UNKNOWN_PRODUCER
        else:
            self.set_producer(ProducerId(self.producer.id, self.producer.epoch + 1))
        return True

    def set_producer(self, producer: ProducerId) -> None:
        """Use this producer id and epoch from now on."""
        self.producer = producer
        for queue in self._to_renumber:
            queue.sequences.begin(producer)
            self._unresolved.pop(queue, None)
        self._to_renumber.clear()

    def reset(self, producer: ProducerId, queues: list[PartitionQueue]) -> None:
        """Use a producer id and epoch that no broker knows: nothing is in flight, and every queue starts from 0."""
        for queue in queues:
            queue.sequences.reset()
        self._unresolved.clear()
        self._to_renumber.clear()
        self._bump_wanted = False
        self.producer = producer
