"""A partition that this node leads: take appends, raise the high watermark, wake who waits.

L1  Offsets are dense and growing.
L3  The high watermark never falls within an epoch.
L4  It is never above what is durable in the sense of the flush mode: with `ack` the last synced offset, with `os` the
    log's end. With one replica that is the whole rule; followers come with the cluster.
L5  A record is acknowledged, and shown to readers, only below the high watermark.

    append() --> log.append --> [flusher: group commit] --> advance() --> waiters, readers

No clock is read here: `now_ms` comes with each append.
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from ottla.log.log import Appended, Log
from ottla.wire.errors import BrokerError, ErrorCode

Continuation = Callable[[BrokerError | None], None]


class Reader(Protocol):
    """A fetch that waits for more."""

    def wake(self, partition: "Partition") -> None:
        """The partition has more to show, or nothing any more."""
        ...


class Flusher(Protocol):
    """Makes appended records durable and says so with `Partition.advance`."""

    def appended(self, partition: "Partition") -> None:
        """The partition's log has grown."""
        ...

    def flush(self, partition: "Partition") -> None:
        """Make a partition durable soon, whether somebody waits for it or not."""
        ...

    def when_idle(self, callback: Callable[[], object]) -> None:
        """Call back once nothing waits for the disk."""
        ...


class Partition:
    """One replica and its role."""

    __slots__ = (
        "_flusher",
        "_waiters",
        "bytes_in",
        "bytes_out",
        "error",
        "fetch_failures",
        "fetch_requests",
        "high_watermark",
        "index",
        "leader_epoch",
        "log",
        "messages_in",
        "produce_failures",
        "produce_requests",
        "readers",
        "topic",
        "topic_id",
    )

    def __init__(self, log: Log, topic_id: bytes, leader_epoch: int, flusher: Flusher) -> None:
        self.log = log
        self.topic = log.topic
        self.topic_id = topic_id
        self.index = log.partition
        self.lead(leader_epoch)
        self.high_watermark = log.end_offset
        self.error: BrokerError | None = None
        self.readers: set[Reader] = set()
        self.bytes_in = 0
        self.bytes_out = 0
        self.messages_in = 0
        self.produce_requests = 0
        self.produce_failures = 0
        self.fetch_requests = 0
        self.fetch_failures = 0
        self._waiters: deque[tuple[int, Continuation]] = deque()
        self._flusher = flusher

    def lead(self, leader_epoch: int) -> None:
        """Begin an epoch: whatever is appended from now on is of it."""
        self.leader_epoch = leader_epoch
        self.log.begin_epoch(leader_epoch)

    # Writing

    def append(self, records: bytes | bytearray | memoryview, now_ms: int) -> Appended:
        """Append one client batch. BrokerError says why not; nothing of it is stored then."""
        if self.error is not None:
            raise BrokerError(self.error.code, self.error.message)  # a new one, or it would keep every frame
        # The buffer is stamped in place, so it is one the peer's bytes were read into: never bytes.
        appended = self.log.append(records, self.leader_epoch, now_ms)  # type: ignore[arg-type]
        if not appended.duplicate:
            self.bytes_in += len(records)
            self.messages_in += appended.end_offset - appended.base_offset
            self._flusher.appended(self)
        return appended

    def append_own(
        self, records: bytearray | memoryview, now_ms: int, transaction_version: int = 0
    ) -> Appended:
        """Append batches of the broker itself: coordinators' records, markers of transactions."""
        if self.error is not None:
            raise BrokerError(self.error.code, self.error.message)
        appended = self.log.append(
            records, self.leader_epoch, now_ms, from_client=False, transaction_version=transaction_version
        )
        self.bytes_in += len(records)
        self.messages_in += appended.end_offset - appended.base_offset
        self._flusher.appended(self)
        return appended

    def when_durable(self, end_offset: int, continuation: Continuation) -> None:
        """Call back once everything below `end_offset` is under the high watermark, or can never be."""
        self._waiters.append((end_offset, continuation))

    def advance(self, end_offset: int) -> None:
        """Raise the high watermark and wake who waited for it."""
        if end_offset <= self.high_watermark:
            return
        self.high_watermark = end_offset
        waiters = self._waiters
        while waiters and waiters[0][0] <= end_offset:
            waiters.popleft()[1](None)
        if self.readers:
            for reader in tuple(self.readers):
                reader.wake(self)

    def fail(self, error: BrokerError) -> None:
        """Answer everything from now on with `error`: the directory is gone, or the partition is."""
        self.error = error
        waiters, self._waiters = self._waiters, deque()
        for _, continuation in waiters:
            continuation(error)
        for reader in tuple(self.readers):
            reader.wake(self)

    # Reading

    @property
    def last_stable_offset(self) -> int:
        """Return the offset below which every transaction has ended."""
        return self.log.last_stable_offset(self.high_watermark)

    def check_epoch(self, leader_epoch: int) -> None:
        """Refuse a client whose idea of the leader epoch is older or newer than ours (KIP-320); -1 does not care."""
        if self.error is not None:
            raise BrokerError(self.error.code, self.error.message)  # a new one, or it would keep every frame
        if leader_epoch >= 0 and leader_epoch != self.leader_epoch:
            older = leader_epoch < self.leader_epoch
            raise BrokerError(ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH)
