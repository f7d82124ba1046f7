"""A partition that has a replica here: take appends, raise the high watermark, wake who waits.

L1  Offsets are dense and growing.
L3  The high watermark never falls within an epoch.
L4  It is never above what is durable in the sense of the flush mode: with `ack` the last synced offset, with `os` the
    log's end. With one replica that is the whole rule; with several, `Leadership` says how far the others allow it.
L5  A record is acknowledged to those who ask for all, and shown to readers, only below the high watermark; to those who
    ask for the leader alone it is acknowledged once it is durable here.
L9  Only a leader takes appends. Whoever waited for one when the leadership went, hears NOT_LEADER_OR_FOLLOWER; what
    became of the record is then for the next leader to say (KAFKA-13574).
L10 One that waits and whose answer breaks keeps nobody else waiting, nor whoever has appended: that bug is reported.

    append() --> log.append --> [flusher: group commit] --> advance() --> waiters, readers
                                    followers' fetches ------^

    LEADING --follow()--> FOLLOWING --lead()--> LEADING
       |                      |
       +------ fail() --------+--> FAILED          (parked replies fail)

No clock is read here: `now_ms` comes with each append and each fetch.
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from ottla.log.appended import Appended
from ottla.log.inspection import Allowance, Inspected
from ottla.log.log import Log
from ottla.log.verification import Verification
from ottla.partition.leadership import Leadership
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
        "_local_waiters",
        "_waiters",
        "bytes_in",
        "bytes_out",
        "cuts",
        "durable_offset",
        "error",
        "fetch_failures",
        "fetch_requests",
        "high_watermark",
        "index",
        "leader_epoch",
        "leadership",
        "log",
        "messages_in",
        "produce_failures",
        "produce_requests",
        "readers",
        "refusal",
        "tailers",
        "topic",
        "topic_id",
    )

    def __init__(self, log: Log, topic_id: bytes, leader_epoch: int, flusher: Flusher) -> None:
        self.log = log
        self.topic = log.topic
        self.topic_id = topic_id
        self.index = log.partition
        # Who follows, while this replica leads and has followers.
        self.leadership: Leadership | None = None
        self.error: BrokerError | None = None  # why nothing can be done here any more
        self.refusal: BrokerError | None = None  # why nothing can be appended: that error, or another leads
        self.leader_epoch = leader_epoch
        self.log.begin_epoch(leader_epoch)
        self.high_watermark = self.durable_offset = log.end_offset
        self.cuts = 0  # how often its end was taken away, so that a sync which began before means nothing
        self.readers: dict[Reader, None] = {}  # who waits for more to be committed
        self.tailers: dict[Reader, None] = {}  # followers, who wait for more to be written, or committed
        self.bytes_in = 0
        self.bytes_out = 0
        self.messages_in = 0
        self.produce_requests = 0
        self.produce_failures = 0
        self.fetch_requests = 0
        self.fetch_failures = 0
        self._waiters: deque[tuple[int, Continuation]] = deque()
        self._local_waiters: deque[tuple[int, Continuation]] = deque()
        self._flusher = flusher

    # Roles

    @property
    def is_leader(self) -> bool:
        """Whether appends are taken here."""
        return self.refusal is None

    def lead(self, leader_epoch: int, leadership: Leadership | None = None) -> None:
        """Begin an epoch: whatever is appended from now on is of it. Alone, or with followers."""
        changed = leader_epoch != self.leader_epoch
        self.leader_epoch = leader_epoch
        self.leadership = leadership
        self.refusal = self.error
        self.log.begin_epoch(leader_epoch)
        if changed:
            _wake(self.readers | self.tailers, self)  # whoever waits in an earlier epoch is told

    def follow(self, leader_epoch: int) -> None:
        """Another replica leads from this epoch on."""
        self.leader_epoch = leader_epoch
        self.leadership = None
        if self.error is None:
            self.refusal = BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)  # first of all: what follows may fail
        self.log.truncate_to(self.log.end_offset)  # an epoch that began here and wrote nothing never was
        if self.error is None and self.refusal is not None:
            self._refuse_waiters(self.refusal)
            _wake(self.readers | self.tailers, self)

    # Writing

    def append(
        self,
        records: bytes | bytearray | memoryview,
        now_ms: int,
        inspected: Inspected | BrokerError | None = None,
        verification: Verification | None = None,
        allowance: Allowance | None = None,
    ) -> Appended:
        """Append one client batch. BrokerError says why not; nothing of it is stored then.

        PostponedError asks for a look through it in a thread first, whose result is `inspected`. With `verification` a
        batch opens a transaction only if that holds. What is decompressed is counted in `allowance`.
        """
        if self.refusal is not None:
            raise BrokerError(
                self.refusal.code, self.refusal.message
            )  # a new one, or it would keep every frame
        if self.leadership is not None:
            self.leadership.now_ms = now_ms
        # The buffer is stamped in place, so it is one the peer's bytes were read into: never bytes.
        appended = self.log.append(
            records,  # type: ignore[arg-type]
            self.leader_epoch,
            now_ms,
            inspected=inspected,
            verification=verification,
            allowance=allowance,
        )
        if not appended.duplicate:
            self.bytes_in += len(records)
            self.messages_in += appended.end_offset - appended.base_offset
            if self.tailers:
                _wake(self.tailers, self)  # they fetch while we sync
            self._flusher.appended(self)
        return appended

    def append_own(
        self,
        records: bytearray | memoryview,
        now_ms: int,
        transaction_version: int = 0,
        *,
        any_length: bool = False,
    ) -> Appended:
        """Append batches of the broker itself: coordinators' records, markers of transactions.

        With `any_length` they may be longer than `max.message.bytes`.
        """
        if self.refusal is not None:
            raise BrokerError(self.refusal.code, self.refusal.message)
        if self.leadership is not None:
            self.leadership.now_ms = now_ms
            if self.leadership.is_under_min_isr:
                raise BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS)
        appended = self.log.append(
            records,
            self.leader_epoch,
            now_ms,
            from_client=False,
            transaction_version=transaction_version,
            any_length=any_length,
        )
        self.bytes_in += len(records)
        self.messages_in += appended.end_offset - appended.base_offset
        if self.tailers:
            _wake(self.tailers, self)
        self._flusher.appended(self)
        return appended

    def stored(self, size_bytes: int) -> None:
        """Batches of the leader were stored: have them synced."""
        self.bytes_in += size_bytes
        self._flusher.appended(self)

    def when_durable(self, end_offset: int, continuation: Continuation) -> None:
        """Call back once everything below `end_offset` is under the high watermark, or can never be."""
        self._waiters.append((end_offset, continuation))

    def when_stored(self, end_offset: int, continuation: Continuation) -> None:
        """Call back once everything below `end_offset` is durable here, whatever the followers do."""
        self._local_waiters.append((end_offset, continuation))

    def advance(self, end_offset: int) -> None:
        """All below `end_offset` is durable here: raise the high watermark as far as that allows.

        More may be known to be durable: a sync speaks of the time it began at. Only a cut takes that back.
        """
        if end_offset < self.durable_offset:
            end_offset = self.durable_offset
        self.durable_offset = end_offset
        if self.leadership is not None or self._local_waiters or self.refusal is not None:
            self._advance_with_others(end_offset)
        elif end_offset > self.high_watermark:
            self.raise_watermark(end_offset)

    def _advance_with_others(self, end_offset: int) -> None:
        waiters = self._local_waiters
        while waiters and waiters[0][0] <= end_offset:
            try:
                waiters.popleft()[1](None)
            except Exception as bug:  # noqa: BLE001  # L10
                self.log.report_bug(bug)
        leadership = self.leadership
        if leadership is not None:
            self.raise_watermark(leadership.watermark(end_offset, self.log.end_offset, leadership.now_ms))
        elif self.refusal is None:
            self.raise_watermark(end_offset)

    def raise_watermark(self, offset: int) -> None:
        """Commit all below `offset`, unless it was before, and wake who waited for that."""
        if offset <= self.high_watermark:
            return
        self.high_watermark = offset
        waiters = self._waiters
        while waiters and waiters[0][0] <= offset:
            try:
                waiters.popleft()[1](None)
            except Exception as bug:  # noqa: BLE001  # L10
                self.log.report_bug(bug)
        for reader in tuple(self.readers):  # as `_wake` does, without its frame
            try:
                reader.wake(self)
            except Exception as bug:  # noqa: BLE001  # L10
                self.log.report_bug(bug)
        if self.tailers:
            _wake(self.tailers, self)

    def _refuse_waiters(self, error: BrokerError) -> None:
        for waiters in (self._local_waiters, self._waiters):
            while waiters:
                try:
                    waiters.popleft()[1](error)
                except Exception as bug:  # noqa: BLE001  # L10
                    self.log.report_bug(bug)

    def fail(self, error: BrokerError) -> None:
        """Answer everything from now on with `error`: the directory is gone, or the partition is."""
        self.error = self.refusal = error
        self._refuse_waiters(error)
        _wake(self.readers | self.tailers, self)

    # Reading

    @property
    def last_stable_offset(self) -> int:
        """Return the offset below which every transaction has ended."""
        return self.log.last_stable_offset(self.high_watermark)

    def check_leader(self, leader_epoch: int) -> None:
        """Refuse a client with another idea of the leader epoch, and whoever asks a follower for a leader's word."""
        self.check_epoch(leader_epoch)
        if self.refusal is not None:
            raise BrokerError(self.refusal.code, self.refusal.message)

    def check_known(self, offset: int) -> None:
        """OFFSET_NOT_AVAILABLE from a new leader that does not know yet how far its predecessor had committed."""
        leadership = self.leadership
        if leadership is not None and leadership.epoch_start_offset > offset:
            raise BrokerError(ErrorCode.OFFSET_NOT_AVAILABLE)

    def start_has_moved(self) -> None:
        """Have followers hear that the log begins later now."""
        _wake(self.tailers, self)

    def check_epoch(self, leader_epoch: int) -> None:
        """Refuse a client whose idea of the leader epoch is older or newer than ours (KIP-320); -1 does not care."""
        if self.error is not None:
            raise BrokerError(self.error.code, self.error.message)  # a new one, or it would keep every frame
        if leader_epoch >= 0 and leader_epoch != self.leader_epoch:
            older = leader_epoch < self.leader_epoch
            raise BrokerError(ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH)


def _wake(readers: dict[Reader, None], partition: Partition) -> None:
    for reader in tuple(readers):
        try:
            reader.wake(partition)
        except Exception as bug:  # noqa: BLE001  # L10
            partition.log.report_bug(bug)
