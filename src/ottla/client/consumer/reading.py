"""How far one partition was read, and from whom to read on.

R1  A position is that of the next record to hand out. It moves forward as records are handed out, and jumps only by
    `seek`, by a reset, or because the log was found truncated.
R2  A position that bears the epoch of the record before it is checked against every new leader before anything
    more is read (KIP-320): the log may have lost that record.
R3  Each jump begins a new era, and so does each assignment: no two of them ever have the same number. What was fetched,
    or asked for, in an earlier era is thrown away when it comes.
R4  Records are fetched ahead of the position: `fetch_offset` is where the next fetch begins.

    INITIALIZING --seek()--> FETCHING <--seek()-- RESETTING
         |                    |    ^                  ^
         |    lead() with a   |    | validated()      | reset()
         |    new epoch       v    |                  |
         +--reset()-----> VALIDATING -----------------+

No clock is read here: `now` is handed in.
"""

import enum
import itertools
from typing import NamedTuple

from ottla.client.consumer.reset import Reset
from ottla.client.record import OffsetAndMetadata, TopicPartition

NO_EPOCH = -1
NO_NODE = -1
_ERAS = itertools.count()


class Stage(enum.Enum):
    """What a partition waits for."""

    INITIALIZING = enum.auto()  # for a committed offset, if there is a group
    RESETTING = enum.auto()  # for the offset at an end, or at a time
    VALIDATING = enum.auto()  # for a new leader to say that it has the record before the position
    FETCHING = enum.auto()  # for records


class Position(NamedTuple):
    """Where to read on: an offset, the epoch of the record before it, and the leader as it was known then."""

    offset: int
    epoch: int = NO_EPOCH
    leader: int = NO_NODE
    leader_epoch: int = NO_EPOCH


class Truncation(NamedTuple):
    """The log ends, for the epoch of our last record, before our position; where is not known if that is None."""

    partition: TopicPartition
    position: Position
    divergent: OffsetAndMetadata | None


class Reading:
    """One assigned partition."""

    __slots__ = (
        "awaiting_callback",
        "buffered_bytes",
        "era",
        "fetch_offset",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "partition",
        "paused",
        "position",
        "replica",
        "replica_until",
        "reset_to",
        "retry_at",
        "revoking",
        "stage",
    )

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.stage = Stage.INITIALIZING
        self.position: Position | None = None
        self.fetch_offset = -1
        self.era = next(_ERAS)
        self.reset_to: Reset | None = None
        self.retry_at = 0.0
        self.paused = False
        self.revoking = False
        self.awaiting_callback = False
        self.buffered_bytes = 0
        self.high_watermark: int | None = None
        self.last_stable_offset: int | None = None
        self.log_start_offset: int | None = None
        self.replica = NO_NODE
        self.replica_until = 0.0

    # What it is ready for

    @property
    def is_fetchable(self) -> bool:
        """Whether records of it may be fetched, and handed out."""
        return (
            self.stage is Stage.FETCHING
            and not self.paused
            and not self.revoking
            and not self.awaiting_callback
        )

    @property
    def needs_offset(self) -> bool:
        """Whether it has yet to be said where reading begins."""
        return self.stage is Stage.INITIALIZING and not self.revoking and not self.awaiting_callback

    @property
    def valid_position(self) -> Position | None:
        """The position, unless it is being looked for or in doubt."""
        return self.position if self.stage is Stage.FETCHING else None

    # Jumps

    def seek(self, position: Position) -> None:
        """Read on from a position; if it bears an epoch, that is checked with the leader first."""
        self._jump()
        self.position = position
        self.fetch_offset = position.offset
        self.reset_to = None
        doubtful = position.epoch != NO_EPOCH and position.leader_epoch != NO_EPOCH
        self.stage = Stage.VALIDATING if doubtful else Stage.FETCHING

    def reset(self, to: Reset) -> None:
        """Forget the position, and have a new one looked for."""
        self._jump()
        self.position = None
        self.reset_to = to
        self.stage = Stage.RESETTING

    def found(self, position: Position, era: int) -> bool:
        """Take the offset that a reset led to, unless something else has happened since it was asked for."""
        if era != self.era or self.stage is not Stage.RESETTING:
            return False
        self.seek(position._replace(epoch=NO_EPOCH))
        return True

    def _jump(self) -> None:
        self.era = next(_ERAS)
        self.retry_at = 0.0

    def begin_era(self, fetch_offset: int) -> None:
        """Throw away what was fetched, and fetch from here on."""
        self._jump()
        self.fetch_offset = fetch_offset

    # Leaders

    def lead(self, node: int, epoch: int) -> None:
        """Learn who leads now; the position is in doubt until a new leader has confirmed it."""
        position = self.position
        if position is None or (position.leader == node and position.leader_epoch == epoch):
            return
        if self.stage is Stage.FETCHING or self.stage is Stage.VALIDATING:
            self.seek(position._replace(leader=node, leader_epoch=epoch))
            self.replica = NO_NODE

    def validated(
        self, asked: Position, end_offset: int, epoch: int, *, may_reset: Reset
    ) -> Truncation | None:
        """Take the leader's word on where the epoch of our last record ends; return what was lost without a remedy."""
        if self.stage is not Stage.VALIDATING or self.position != asked:
            return None
        has_remedy = may_reset.timestamp is not None or may_reset.duration_ms is not None
        if end_offset < 0 or epoch < 0:
            if not has_remedy:
                return Truncation(self.partition, asked, None)
            self.reset(may_reset)
        elif end_offset < asked.offset:
            if not has_remedy:
                return Truncation(self.partition, asked, OffsetAndMetadata(end_offset, "", epoch))
            self.seek(asked._replace(offset=end_offset, epoch=epoch))
            self.trust()
        else:
            self.trust()
        return None

    def trust(self) -> None:
        """Have no more doubts about the position."""
        if self.stage is Stage.VALIDATING:
            self.stage = Stage.FETCHING
            self.retry_at = 0.0

    # Reading

    def advance(self, offset: int, epoch: int) -> None:
        """Records up to an offset were handed out; the last of them is of that epoch, or of none that is known."""
        assert self.position is not None
        self.position = self.position._replace(offset=offset, epoch=epoch)

    def lag(self, *, committed_only: bool) -> int | None:
        """Return how many offsets lie between the position and the end, as of the last fetch."""
        end = self.last_stable_offset if committed_only else self.high_watermark
        return None if end is None or self.position is None else max(0, end - self.position.offset)

    # Replicas

    def read_from(self, node: int, until: float) -> None:
        """Read from this replica for a while (KIP-392)."""
        if node != self.replica:
            self.replica, self.replica_until = node, until

    def nearest(self, now: float) -> int:
        """Return the replica to read from, or -1 for the leader."""
        if self.replica != NO_NODE and now > self.replica_until:
            self.replica = NO_NODE
        return self.replica

    def leave_replica(self) -> bool:
        """Go back to the leader; whether it was read from another."""
        was, self.replica = self.replica, NO_NODE
        return was != NO_NODE
