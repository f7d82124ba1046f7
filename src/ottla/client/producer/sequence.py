"""The sequence numbers of one partition, by which a broker finds duplicates (KIP-98).

Q1  Batches are numbered in the order in which they are first sent, without gaps, from 0 for each producer epoch.
Q2  `in_flight` has the numbered batches that have not ended, in the order of their numbers. They wait for a response
    or for a retry.
Q3  After a batch of unknown outcome has failed, no new batch is numbered until all outcomes are known.
"""

from typing import NamedTuple

from ottla.client.producer.batch import ProducerBatch
from ottla.wire.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, SEQUENCE_MAX

NONE_ACKED = -1
EPOCH_MAX = 0x7FFF


class ProducerId(NamedTuple):
    """A producer id with its epoch. Each epoch starts with sequence number 0."""

    id: int = NO_PRODUCER_ID
    epoch: int = NO_PRODUCER_EPOCH

    @property
    def is_known(self) -> bool:
        """Whether a broker has assigned it."""
        return self.id != NO_PRODUCER_ID


UNKNOWN_PRODUCER = ProducerId()


class PartitionSequences:
    """The sequence numbers of one partition."""

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
        self.producer = UNKNOWN_PRODUCER
        self.in_flight: list[ProducerBatch] = []
        self.unresolved: int | None = None
        self._restart()

    def _restart(self) -> None:
        self.next = 0
        self.last_acked = NONE_ACKED
        self.last_acked_offset = -1

    def reset(self) -> None:
        """Forget everything."""
        self.producer = UNKNOWN_PRODUCER
        self.in_flight = []
        self.unresolved = None
        self._restart()

    def number(self, batch: ProducerBatch) -> None:
        """Number a batch that is sent for the first time."""
        batch.number(*self.producer, self.next)
        self.next = self.next + batch.count & SEQUENCE_MAX
        self._numbered += 1
        batch.ordinal = self._numbered
        self.in_flight.append(batch)

    @property
    def numbered_since_oldest(self) -> int:
        """How many batches were numbered since the oldest one in flight, including it."""
        return self._numbered - self.in_flight[0].ordinal + 1 if self.in_flight else 0

    def begin(self, producer: ProducerId) -> None:
        """Start from 0 with this producer id. Batches in flight get new numbers, and are marked as renumbered."""
        self.producer = producer
        acked_offset = self.last_acked_offset
        self._restart()
        self.last_acked_offset = acked_offset
        for batch in self.in_flight:
            batch.number(*producer, self.next)
            batch.renumbered = True
            self.next = self.next + batch.count & SEQUENCE_MAX
        self.unresolved = None

    def acked(self, batch: ProducerBatch, base_offset: int) -> None:
        """Handle that the broker has stored a batch."""
        # A batch of an earlier epoch may be confirmed late. It does not count.
        if (batch.producer_id, batch.producer_epoch) == self.producer:
            if self.last_acked == NONE_ACKED or _follows(batch.last_sequence, self.last_acked):
                self.last_acked = batch.last_sequence
        if base_offset >= 0:
            self.last_acked_offset = max(self.last_acked_offset, base_offset + batch.count - 1)
        self.remove(batch)

    def remove(self, batch: ProducerBatch) -> None:
        """Remove a batch that has ended."""
        if batch in self.in_flight:
            self.in_flight.remove(batch)

    def replace(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Replace a batch by its parts."""
        if batch in self.in_flight:
            index = self.in_flight.index(batch)
            self.in_flight[index : index + 1] = parts

    def close_gap(self, batch: ProducerBatch) -> None:
        """Reuse the numbers of a batch that the broker has refused: the batches behind it move up."""
        self.next = self.next - batch.count & SEQUENCE_MAX
        behind = False
        for other in self.in_flight:
            behind = behind or _follows(other.base_sequence, batch.base_sequence)
            if behind:
                sequence = other.base_sequence - batch.count & SEQUENCE_MAX
                other.number(other.producer_id, other.producer_epoch, sequence)
                other.renumbered = True

    def is_next(self, sequence: int) -> bool:
        """Whether this number follows the last confirmed one."""
        return sequence == (self.last_acked + 1 & SEQUENCE_MAX)

    def give_up(self, batch: ProducerBatch) -> None:
        """Note that the outcome of this batch is unknown."""
        following = batch.last_sequence + 1 & SEQUENCE_MAX
        if self.unresolved is None or _follows(following, self.unresolved):
            self.unresolved = following


def _follows(one: int, other: int) -> bool:
    """Whether a number comes after another. Numbers wrap around after the largest."""
    return 0 < (one - other & SEQUENCE_MAX) <= SEQUENCE_MAX // 2
