"""Who an idempotent producer is, and what follows from it for what may leave and what is sent again (KIP-98, KIP-360).

I1  A new batch leaves only when everything of its partition that is in flight bears the same identity, and when it is
    known what became of all that was sent before. The first batch of a partition leaves alone: a broker that has
    nothing of a producer takes any number for the first, and so the second batch where the first has failed.
    And no more follow one in flight, over whichever connections, than a broker can tell apart.
I2  Of batches that are sent again the first one leaves alone; the others follow when it has arrived. So the order stays
    whatever happens to up to five requests in flight.
I3  Where numbers were lost for good, a producer without transactions takes the next epoch and counts the partition's
    batches anew; one with transactions aborts.
"""

from typing import TYPE_CHECKING

from ottla.client.producer.batch import Batch
from ottla.client.producer.lane import Lane
from ottla.client.producer.sequence import EPOCH_MAX, NOBODY, NONE_ACKED, ProducerId
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.client.errors import ClientError

# So many batches of a producer a broker knows again.
_REMEMBERED_BATCHES = 5


class Identity:
    """The producer id of a producer, and the partitions it counts for."""

    def __init__(self, *, transactional: bool = False) -> None:
        self._transactional = transactional
        self.producer = NOBODY
        self.fatal: ClientError | None = None
        self._bump_wanted = False
        self._to_renumber: dict[Lane, None] = {}
        self._unresolved: dict[Lane, None] = {}

    # What leaves

    def may_leave(self, lane: Lane, batch: Batch) -> bool:
        """Whether the first batch of a lane may be sent now."""
        sequences = lane.sequences
        if self.fatal is not None or not self.producer.is_known:
            return False
        if batch.has_sequence:
            return not sequences.in_flight or sequences.in_flight[0] is batch
        if sequences.in_flight and (
            sequences.last_acked == NONE_ACKED
            or sequences.producer != self.producer
            or sequences.behind_oldest >= _REMEMBERED_BATCHES
        ):
            return False
        return sequences.unresolved is None

    def leave(self, lane: Lane, batch: Batch) -> None:
        """Number a batch that leaves for the first time."""
        if not batch.has_sequence:
            if lane.sequences.producer != self.producer:
                lane.sequences.begin(self.producer)
            lane.sequences.number(batch)

    # What came of it

    def may_retry(self, lane: Lane, batch: Batch, code: ErrorCode, log_start_offset: int) -> bool:
        """Whether a batch that a broker refused with this code is sent again, perhaps in the next epoch."""
        sequences = lane.sequences
        if code is ErrorCode.UNKNOWN_PRODUCER_ID:
            if log_start_offset == -1 or batch.renumbered:
                return True
            if self._transactional:
                if sequences.last_acked_offset >= log_start_offset:
                    return False
                # What it had written is gone with the head of the log, and the broker's memory of it, too.
                sequences.begin(self.producer)
                return True
            self._want_bump(lane)
            return True
        if code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            unresolved = sequences.unresolved
            is_first = not sequences.in_flight or sequences.in_flight[0] is batch
            if unresolved is None and (batch.renumbered or not is_first):
                # One before it has failed, and is sent again first.
                return True
            if not self._transactional:
                if unresolved is None or batch.base_sequence == unresolved:
                    self._want_bump(lane)
                return True
        return code.retriable

    def completed(self, lane: Lane, batch: Batch, base_offset: int) -> None:
        """Take in that the broker has a batch."""
        lane.sequences.acked(batch, base_offset)

    def failed(self, lane: Lane, batch: Batch, code: ErrorCode | None, *, refused: bool) -> None:
        """Take in that a batch is not sent any more; `refused` says that the broker has not got it for certain."""
        sequences = lane.sequences
        if not batch.has_sequence:
            return
        sequences.remove(batch)
        if code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not self._transactional:
            self._want_bump(lane)
        elif code is ErrorCode.UNKNOWN_PRODUCER_ID:
            sequences.reset()
            self._unresolved.pop(lane, None)
        elif refused:
            if self._transactional:
                sequences.close_gap(batch)
            else:
                self._want_bump(lane)
        else:
            sequences.give_up(batch)
            self._unresolved[lane] = None

    def resolve(self) -> dict[Lane, bool]:
        """Return the lanes of which it is known now what became of all that was sent, and whether some was lost."""
        known: dict[Lane, bool] = {}
        for lane in tuple(self._unresolved):
            sequences = lane.sequences
            if not sequences.in_flight:
                del self._unresolved[lane]
                known[lane] = not sequences.is_next(sequences.next)
                if not known[lane]:
                    sequences.unresolved = None
                elif not self._transactional:
                    self._want_bump(lane)
        return known

    @property
    def has_unresolved(self) -> bool:
        """Whether there are lanes of which it is not known what was lost."""
        return bool(self._unresolved)

    # Epochs

    def _want_bump(self, lane: Lane) -> None:
        self._bump_wanted = True
        self._to_renumber[lane] = None

    def bump(self) -> bool:
        """Take the next epoch if there is need; whether it was so. After the last epoch a new id is needed."""
        if not self._bump_wanted:
            return False
        self._bump_wanted = False
        if self.producer.epoch >= EPOCH_MAX:
            self.producer = NOBODY
        else:
            self.become(ProducerId(self.producer.id, self.producer.epoch + 1))
        return True

    def become(self, producer: ProducerId) -> None:
        """Be this producer from now on."""
        self.producer = producer
        for lane in self._to_renumber:
            lane.sequences.begin(producer)
            self._unresolved.pop(lane, None)
        self._to_renumber.clear()

    def start_over(self, producer: ProducerId, lanes: list[Lane]) -> None:
        """Be this producer, of which no broker has heard: nothing is in flight, and every lane counts from 0."""
        for lane in lanes:
            lane.sequences.reset()
        self._unresolved.clear()
        self._to_renumber.clear()
        self._bump_wanted = False
        self.producer = producer
