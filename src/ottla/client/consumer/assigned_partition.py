"""The position of a consumer in one assigned partition, and the broker to fetch from.

R1  The position is the offset of the next record to return. It advances with the records that are returned. It jumps
    only by `seek`, by a reset, or after a truncation of the log.
R2  A position with the leader epoch of the record before it is validated with each new leader before the next fetch
    (KIP-320): the log may have lost that record.
R3  Each jump and each assignment gets a new `position_id`, which is unique. Fetches with another id are discarded.
R4  Records are fetched ahead of the position: `fetch_offset` is the offset of the next fetch.

    INITIALIZING --seek()--> FETCHING <--seek()-- RESETTING
         |                    |    ^                  ^
         |    set_leader()    |    | validated()      | reset()
         |    new epoch       v    |                  |
         +--reset()-----> VALIDATING -----------------+

No clock is read here: `now` is an argument.
"""

import enum
import itertools
from typing import NamedTuple

from ottla.client.consumer.offset_reset import AutoOffsetReset
from ottla.client.record import OffsetAndMetadata, TopicPartition

NO_EPOCH = -1
NO_NODE = -1
_POSITION_IDS = itertools.count()


class FetchState(enum.Enum):
    """What a partition waits for."""

    INITIALIZING = enum.auto()  # for a committed offset, if there is a group
    RESETTING = enum.auto()  # for the offset at an end, or at a time
    VALIDATING = enum.auto()  # for a new leader to say that it has the record before the position
    FETCHING = enum.auto()  # for records


class FetchPosition(NamedTuple):
    """The next offset, the leader epoch of the record before it, and the leader when it was set."""

    offset: int
    epoch: int = NO_EPOCH
    leader: int = NO_NODE
    leader_epoch: int = NO_EPOCH


class Truncation(NamedTuple):
    """The log was truncated below the position. `divergent` is the new end, or None if it is not known."""

    partition: TopicPartition
    position: FetchPosition
    divergent: OffsetAndMetadata | None


class AssignedPartition:
    """The state of one assigned partition."""

    __slots__ = (
        "awaiting_callback",
        "buffered_bytes",
        "fetch_offset",
        "fetch_state",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "partition",
        "paused",
        "position",
        "position_id",
        "replica",
        "replica_until",
        "reset_to",
        "retry_at",
        "revoking",
    )

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.fetch_state = FetchState.INITIALIZING
        self.position: FetchPosition | None = None
        self.fetch_offset = -1
        self.position_id = next(_POSITION_IDS)
        self.reset_to: AutoOffsetReset | None = None
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

    # State

    @property
    def is_fetchable(self) -> bool:
        """Whether its records may be fetched and returned."""
        return (
            self.fetch_state is FetchState.FETCHING
            and not self.paused
            and not self.revoking
            and not self.awaiting_callback
        )

    @property
    def needs_offset(self) -> bool:
        """Whether its initial position is not known yet."""
        return (
            self.fetch_state is FetchState.INITIALIZING and not self.revoking and not self.awaiting_callback
        )

    @property
    def valid_position(self) -> FetchPosition | None:
        """The position, or None while it is looked up or validated."""
        return self.position if self.fetch_state is FetchState.FETCHING else None

    # Jumps

    def seek(self, position: FetchPosition) -> None:
        """Continue at a position. One with a leader epoch is validated with the leader first."""
        self._discard_fetched()
        self.position = position
        self.fetch_offset = position.offset
        self.reset_to = None
        doubtful = position.epoch != NO_EPOCH and position.leader_epoch != NO_EPOCH
        self.fetch_state = FetchState.VALIDATING if doubtful else FetchState.FETCHING

    def reset(self, to: AutoOffsetReset) -> None:
        """Discard the position. A new one is looked up."""
        self._discard_fetched()
        self.position = None
        self.reset_to = to
        self.fetch_state = FetchState.RESETTING

    def finish_reset(self, position: FetchPosition, position_id: int) -> bool:
        """Use the offset of a reset, unless the position has changed since the request."""
        if position_id != self.position_id or self.fetch_state is not FetchState.RESETTING:
            return False
        self.seek(position._replace(epoch=NO_EPOCH))
        return True

    def _discard_fetched(self) -> None:
        self.position_id = next(_POSITION_IDS)
        self.retry_at = 0.0

    def refetch_from(self, fetch_offset: int) -> None:
        """Discard what was fetched, and fetch again from an offset."""
        self._discard_fetched()
        self.fetch_offset = fetch_offset

    # Leaders

    def set_leader(self, node: int, epoch: int) -> None:
        """Set the leader. A new leader has to validate the position."""
        position = self.position
        if position is None or (position.leader == node and position.leader_epoch == epoch):
            return
        if self.fetch_state is FetchState.FETCHING or self.fetch_state is FetchState.VALIDATING:
            self.seek(position._replace(leader=node, leader_epoch=epoch))
            self.replica = NO_NODE

    def validated(
        self, asked: FetchPosition, end_offset: int, epoch: int, *, may_reset: AutoOffsetReset
    ) -> Truncation | None:
        """Handle the end offset of the last record's epoch. Return a truncation that no reset policy resolves."""
        if self.fetch_state is not FetchState.VALIDATING or self.position != asked:
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
            self.mark_valid()
        else:
            self.mark_valid()
        return None

    def mark_valid(self) -> None:
        """Mark the position as validated."""
        if self.fetch_state is FetchState.VALIDATING:
            self.fetch_state = FetchState.FETCHING
            self.retry_at = 0.0

    # Reading

    def advance(self, offset: int, epoch: int) -> None:
        """Set the position after records were returned. `epoch` is that of the last one, or NO_EPOCH."""
        assert self.position is not None
        self.position = self.position._replace(offset=offset, epoch=epoch)

    def lag(self, *, committed_only: bool) -> int | None:
        """Return the number of offsets between the position and the end, as of the last fetch."""
        end = self.last_stable_offset if committed_only else self.high_watermark
        return None if end is None or self.position is None else max(0, end - self.position.offset)

    # Replicas

    def set_preferred_replica(self, node: int, until: float) -> None:
        """Fetch from this replica until a point in time (KIP-392)."""
        if node != self.replica:
            self.replica, self.replica_until = node, until

    def replica_to_read(self, now: float) -> int:
        """Return the replica to fetch from, or -1 for the leader."""
        if self.replica != NO_NODE and now > self.replica_until:
            self.replica = NO_NODE
        return self.replica

    def clear_preferred_replica(self) -> bool:
        """Fetch from the leader again. Return whether another replica was used."""
        was, self.replica = self.replica, NO_NODE
        return was != NO_NODE
