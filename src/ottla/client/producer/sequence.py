"""The numbers of one partition's records, by which a broker tells a repetition from news (KIP-98).

Q1  Batches are numbered in the order in which they leave the first time, without gaps, from 0 for each identity.
Q2  `in_flight` are the batches numbered and not ended, in the order of their numbers, whether an answer to them is
    awaited or they wait to be sent again.
Q3  Where a batch was given up whose fate is unknown, nothing new is numbered until the fate of all is known.
"""

from typing import NamedTuple

from ottla.client.producer.batch import Batch
from ottla.wire.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, SEQUENCE_MAX

NONE_ACKED = -1
EPOCH_MAX = 0x7FFF


class ProducerId(NamedTuple):
    """Who a producer is to brokers; each epoch begins to count anew."""

    id: int = NO_PRODUCER_ID
    epoch: int = NO_PRODUCER_EPOCH

    @property
    def is_known(self) -> bool:
        """Whether a broker has given it."""
        return self.id != NO_PRODUCER_ID


NOBODY = ProducerId()


class Sequences:
    """What has been numbered for one partition, and what became of it."""

    __slots__ = (
        "_numbered",
        "in_flight",
        "last_acked",
        "last_acked_offset",
        "next",
        "producer",
        "unresolved",
    )

    def __init__(self) -> None:
        self._numbered = 0
        self.producer = NOBODY
        self.in_flight: list[Batch] = []
        self.unresolved: int | None = None
        self._restart()

    def _restart(self) -> None:
        self.next = 0
        self.last_acked = NONE_ACKED
        self.last_acked_offset = -1

    def reset(self) -> None:
        """Know nothing again."""
        self.producer = NOBODY
        self.in_flight = []
        self.unresolved = None
        self._restart()

    def number(self, batch: Batch) -> None:
        """Give a batch that leaves for the first time its numbers."""
        batch.number(*self.producer, self.next)
        self.next = self.next + batch.count & SEQUENCE_MAX
        self._numbered += 1
        batch.ordinal = self._numbered
        self.in_flight.append(batch)

    @property
    def behind_oldest(self) -> int:
        """How many batches were numbered since the oldest in flight was, and with it, whatever became of them."""
        return self._numbered - self.in_flight[0].ordinal + 1 if self.in_flight else 0

    def begin(self, producer: ProducerId) -> None:
        """Count from 0 as this producer; what is in flight is numbered anew, and says so."""
        self.producer = producer
        acked_offset = self.last_acked_offset
        self._restart()
        self.last_acked_offset = acked_offset
        for batch in self.in_flight:
            batch.number(*producer, self.next)
            batch.renumbered = True
            self.next = self.next + batch.count & SEQUENCE_MAX
        self.unresolved = None

    def acked(self, batch: Batch, base_offset: int) -> None:
        """Take in that the broker has a batch."""
        # One that was given up may be answered when this partition counts anew; it is not of this count.
        if (batch.producer_id, batch.producer_epoch) == self.producer:
            if self.last_acked == NONE_ACKED or _follows(batch.last_sequence, self.last_acked):
                self.last_acked = batch.last_sequence
        if base_offset >= 0:
            self.last_acked_offset = max(self.last_acked_offset, base_offset + batch.count - 1)
        self.remove(batch)

    def remove(self, batch: Batch) -> None:
        """Forget a batch that has ended."""
        if batch in self.in_flight:
            self.in_flight.remove(batch)

    def replace(self, batch: Batch, parts: list[Batch]) -> None:
        """Have the parts of a batch stand where it stood."""
        if batch in self.in_flight:
            place = self.in_flight.index(batch)
            self.in_flight[place : place + 1] = parts

    def close_gap(self, batch: Batch) -> None:
        """Take the numbers of a batch back that the broker has refused: what follows moves up."""
        self.next = self.next - batch.count & SEQUENCE_MAX
        behind = False
        for other in self.in_flight:
            behind = behind or _follows(other.base_sequence, batch.base_sequence)
            if behind:
                sequence = other.base_sequence - batch.count & SEQUENCE_MAX
                other.number(other.producer_id, other.producer_epoch, sequence)
                other.renumbered = True

    def is_next(self, sequence: int) -> bool:
        """Whether this number follows the last one that the broker is known to have."""
        return sequence == (self.last_acked + 1 & SEQUENCE_MAX)

    def give_up(self, batch: Batch) -> None:
        """Note that nobody knows whether the broker has this batch, nor will."""
        following = batch.last_sequence + 1 & SEQUENCE_MAX
        if self.unresolved is None or _follows(following, self.unresolved):
            self.unresolved = following


def _follows(one: int, other: int) -> bool:
    """Whether a number comes after another, in a count that begins again after the largest."""
    return 0 < (one - other & SEQUENCE_MAX) <= SEQUENCE_MAX // 2
