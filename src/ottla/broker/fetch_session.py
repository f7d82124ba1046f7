"""Fetch sessions (KIP-227): what a client wants, remembered, so that a fetch costs what changed.

F1  A session is used by one fetch at a time, and its epoch counts them: 0 opens, -1 is no session, 2^31-1 wraps to 1.
F2  `due` holds every partition that may have something to say: newly wanted, moved, grown, failed. All others are
    silent, so a fetch visits `due` alone. A partition tells its sessions when it grows.
F3  A partition that was served goes to the back of `due`, so no partition starves another.
F4  A session remembers no more partitions than there are in the cluster, and UNKNOWN_MAX that this broker has not heard
    of. A fetch of more is answered without one, as where there is no slot; a session that grows beyond is closed.

    fetch(epoch 0) --open--> [session] --fetch(epoch n)--> [session] --fetch(-1) | evicted--> gone
"""

from collections.abc import Callable, Iterator
from typing import Any

from ottla.partition.partition import Partition
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.fetch import FetchRequest

Key = tuple[str | bytes, int]  # topic name up to v12, topic id from v13, and the partition

UNKNOWN_MAX = 100
_EPOCH_MAX = 2**31 - 1
_ANY_WATERMARK = 2**63 - 1
# With which a session's answer says that it is another's, or none.
SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)


class Wanted:
    """What a client wants of one partition, and what it was last told."""

    __slots__ = (
        "bytes_max",
        "fetched_epoch",
        "high_watermark",
        "key",
        "known_watermark",
        "leader_epoch",
        "offset",
        "own_start_offset",
        "partition",
        "start_offset",
    )

    def __init__(self, key: Key) -> None:
        self.key = key
        self.offset = 0
        self.bytes_max = 0
        self.leader_epoch = -1
        self.fetched_epoch = -1
        self.high_watermark = -1
        self.start_offset = -1
        self.own_start_offset = -1  # of a follower: where its log begins, and the watermark it knows
        self.known_watermark = _ANY_WATERMARK
        self.partition: Partition | None = None

    def update(self, asked: Any) -> None:
        """Take over the fields of a FetchPartition."""
        self.offset = asked.fetch_offset
        self.bytes_max = asked.partition_max_bytes
        self.leader_epoch = asked.current_leader_epoch
        self.fetched_epoch = asked.last_fetched_epoch
        self.own_start_offset = asked.log_start_offset
        self.known_watermark = asked.high_watermark


def all_wanted(request: FetchRequest, by_id: bool) -> list[Wanted]:
    """What a fetch without a session wants; a partition that is named several times as it was named last."""
    found: dict[Key, Wanted] = {}
    for topic in request.topics:
        name = topic.topic_id if by_id else topic.topic
        for part in topic.partitions:
            key = name, part.partition
            wanted = found[key] = Wanted(key)
            wanted.update(part)
    return list(found.values())


class FetchSession:
    """One client's standing interest in partitions."""

    __slots__ = ("by_id", "due", "epoch", "follows", "id", "parked", "touched_ms", "wanted")

    def __init__(self, session_id: int, by_id: bool, follows: bool = False) -> None:
        self.id = session_id
        self.follows = follows  # whether it is a replica's, which wants what is not committed yet as well
        self.epoch = 1
        self.by_id = by_id
        self.wanted: dict[Key, Wanted] = {}
        self.due: dict[Key, Wanted] = {}
        self.parked: Callable[[Partition], None] | None = None
        self.touched_ms = 0

    def watch(self, wanted: Wanted, partition: Partition | None) -> None:
        """Hear of a partition's growth from now on."""
        if wanted.partition is not partition:
            if wanted.partition is not None:
                self._ignore(wanted.partition)
            wanted.partition = partition
        if partition is not None:
            (partition.tailers if self.follows else partition.readers)[self] = None

    def _ignore(self, partition: Partition) -> None:
        (partition.tailers if self.follows else partition.readers).pop(self, None)

    def key_of(self, partition: Partition) -> Key:
        """What a partition is called in this session."""
        return (partition.topic_id if self.by_id else partition.topic, partition.index)

    def wake(self, partition: Partition) -> None:
        """A partition has grown, or failed."""
        key = self.key_of(partition)
        wanted = self.wanted.get(key)
        if wanted is None:
            self._ignore(partition)
            return
        self.due[key] = wanted
        if self.parked is not None:
            self.parked(partition)

    def want(self, key: Key, asked: Any) -> None:
        """Add a partition, or move within one."""
        wanted = self.wanted.get(key)
        if wanted is None:
            wanted = self.wanted[key] = Wanted(key)
        wanted.update(asked)
        self.due[key] = wanted

    def forget(self, key: Key) -> None:
        """Drop a partition."""
        self.due.pop(key, None)
        wanted = self.wanted.pop(key, None)
        if wanted is not None and wanted.partition is not None:
            self._ignore(wanted.partition)

    def close(self) -> None:
        """Stop listening to every partition."""
        for wanted in self.wanted.values():
            if wanted.partition is not None:
                self._ignore(wanted.partition)
        self.wanted.clear()
        self.due.clear()

    def turn(self) -> Iterator[Wanted]:
        """Visit what is due, in order; the caller puts back what still has more."""
        due, self.due = self.due, {}
        return iter(due.values())

    def next_epoch(self) -> None:
        """Count a fetch."""
        self.epoch = 1 if self.epoch == _EPOCH_MAX else self.epoch + 1


class FetchSessions:
    """All sessions of a broker. A cache full to its `slots` evicts what is stale or smaller, as Kafka's does."""

    def __init__(self, slots: int, below: Callable[[int], int], evict_after_ms: int = 120_000) -> None:
        self.slots = slots
        self.evict_after_ms = evict_after_ms
        self.evicted = 0
        self._below = below
        self.opened: dict[int, FetchSession] = {}  # by id, the one used longest ago first

    def __len__(self) -> int:
        return len(self.opened)

    def open(self, by_id: bool, size: int, now_ms: int, follows: bool = False) -> FetchSession | None:
        """Open a session, or return None when there is no room for one of this size."""
        if len(self.opened) >= self.slots and not self._evict(size, now_ms, follows):
            return None
        session_id = 0
        while session_id == 0 or session_id in self.opened:
            session_id = 1 + self._below(_EPOCH_MAX - 1)
        session = FetchSession(session_id, by_id, follows)
        session.touched_ms = now_ms
        self.opened[session_id] = session
        return session

    def find(self, session_id: int, epoch: int, by_id: bool, now_ms: int) -> FetchSession:
        """Return the session for its next fetch, or say why not."""
        session = self.opened.get(session_id)
        if session is None:
            raise BrokerError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.by_id != by_id:
            raise BrokerError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        if session.epoch != epoch or session.parked is not None:
            raise BrokerError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        # Re-inserting keeps the dict in order of use, oldest first, which is the order of eviction.
        self.opened[session_id] = self.opened.pop(session_id)
        session.touched_ms = now_ms
        return session

    def close(self, session_id: int) -> None:
        """End a session, if it is there."""
        session = self.opened.pop(session_id, None)
        if session is not None:
            session.close()

    def _evict(self, size: int, now_ms: int, follows: bool) -> bool:
        if not self.opened:
            return False
        oldest = next(iter(self.opened.values()))
        if now_ms - oldest.touched_ms > self.evict_after_ms:
            victim = oldest
        else:
            victim = min(self.opened.values(), key=lambda session: (session.follows, len(session.wanted)))
            if (victim.follows, len(victim.wanted)) >= (follows, size):
                return False
        if victim.parked is not None:
            return False
        self.close(victim.id)
        self.evicted += 1
        return True
