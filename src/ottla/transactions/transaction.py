"""What is known of one transactional id, and the steps it can take.

X1  A step makes a new value and leaves the old one as it was: nothing has happened before the record is applied.
X2  Every step remembers the producer id it started from. So a retry that names the id of before is known for one step,
    and for one step only.
X3  The epoch never falls while the producer id stays. It ends at 32767, which no client is ever given, so that the last
    epoch a client can have is still fenced by a higher one.

    EMPTY --enlisted()--> ONGOING --prepared()--> PREPARE_COMMIT --completed()--> COMPLETE_COMMIT
                             |                 or PREPARE_ABORT                or COMPLETE_ABORT
                             +-enlisted()-+                                           |
    ONGOING or, with transactions v2, PREPARE_ABORT <--enlisted(), prepared()---------+
    EMPTY <--initialised()------------------------------------------------------------+
"""

from typing import NamedTuple

from ottla.transactions.state import State

TopicPartition = tuple[str, int]

NO_PRODUCER_ID = -1
NO_EPOCH = -1
EPOCH_MAX = 32767
# A timeout that stands for none: the end is decided by a coordinator elsewhere (two-phase commit).
NO_TIMEOUT_MS = 2**31 - 1
# From this transaction version on, the epoch rises with every transaction (KIP-890).
EPOCH_RISES = 2


def exhausted(epoch: int) -> bool:
    """True when a producer id has no further epoch that a client may use."""
    return epoch >= EPOCH_MAX - 1


class Transaction(NamedTuple):
    """A transactional id: its producer, and the transaction that is open or was the last."""

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: State = State.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = -1
    updated_ms: int = -1
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    client_version: int = 0

    def initialised(self, producer_id: int, epoch: int, timeout_ms: int, now: int) -> "Transaction":
        """A producer begins, under this id and epoch."""
        return self._replace(
            producer_id=producer_id,
            producer_epoch=epoch,
            timeout_ms=timeout_ms,
            state=State.EMPTY,
            partitions=frozenset(),
            started_ms=-1,
            updated_ms=now,
            previous_producer_id=self.producer_id,
        )

    def enlisted(self, partitions: frozenset[TopicPartition], client_version: int, now: int) -> "Transaction":
        """More partitions take part; the first of them open the transaction."""
        return self._replace(
            state=State.ONGOING,
            partitions=self.partitions | partitions,
            started_ms=now if self.state.idle else self.started_ms,
            updated_ms=now,
            previous_producer_id=self.producer_id,
            client_version=client_version,
        )

    def prepared(
        self, *, committed: bool, epoch: int, next_producer_id: int, client_version: int, now: int
    ) -> "Transaction":
        """The end is decided. `next_producer_id` takes over when this one has no epochs left."""
        return self._replace(
            producer_epoch=epoch,
            state=State.PREPARE_COMMIT if committed else State.PREPARE_ABORT,
            # An abort of nothing has no beginning of its own.
            started_ms=now if self.state.idle else self.started_ms,
            updated_ms=now,
            previous_producer_id=self.producer_id,
            next_producer_id=next_producer_id,
            client_version=client_version,
        )

    def completed(self, now: int) -> "Transaction":
        """Every marker is written."""
        rotated = self.client_version >= EPOCH_RISES and self.next_producer_id != NO_PRODUCER_ID
        return self._replace(
            producer_id=self.next_producer_id if rotated else self.producer_id,
            producer_epoch=0 if rotated else self.producer_epoch,
            state=State.COMPLETE_COMMIT if self.state is State.PREPARE_COMMIT else State.COMPLETE_ABORT,
            partitions=frozenset(),
            updated_ms=now,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
        )

    def deadline_ms(self, expiration_ms: int) -> int | None:
        """When time alone does something: aborts what is open too long, or forgets an id nobody used."""
        if self.state is State.ONGOING:
            return None if self.timeout_ms == NO_TIMEOUT_MS else self.started_ms + self.timeout_ms + 1
        return self.updated_ms + expiration_ms if self.state.idle else None
