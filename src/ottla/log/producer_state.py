"""Producer state: what makes a retried batch appear once, and in order, and what is known of open transactions.

P2  A producer's batches enter the log in the order of their sequence numbers, each once. Per producer id the epoch
    and the last five batches are remembered; a batch that equals one of them is answered with that one's offsets.
    A snapshot keeps the last one only: what comes again of those before it is DUPLICATE_SEQUENCE_NUMBER, which clients
    take for success. Kafka says that it is out of order, upon which its clients write it a second time.
P3  A producer with no state (new, expired, or its records deleted) may begin at any sequence number; a new epoch
    begins at 0.
T2  A transaction is open from its first batch to its marker; nothing at or above the first offset of an open one is
    stable.

`admit` and `admit_marker` decide before the write and change nothing; `record` and `complete` follow it.
"""

from collections import deque
from typing import NamedTuple

from ottla.log.producer_snapshot import SnapshotEntry
from ottla.log.verification import Verification, Verifications
from ottla.wire.batch import SEQUENCE_MAX
from ottla.wire.errors import BrokerError, ErrorCode

BATCHES_REMEMBERED = 5
_EPOCH_MAX = 0x7FFF
_SEQUENCES_BEHIND_MAX = 1 << 30  # half of all: what lies further back lies ahead


class BatchSpan(NamedTuple):
    """A batch that a producer wrote: the sequence numbers and offsets of its first and last record, and its time."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class CompletedTransaction(NamedTuple):
    """A transaction that its marker at `last_offset` has ended."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


class ProducerEntry:
    """What is known of one producer in one log."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "is_restored",
        "last_timestamp",
        "next_sequence",
        "producer_id",
        "transaction_first_offset",
    )

    def __init__(self, producer_id: int, epoch: int = -1) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = -1
        self.last_timestamp = -1
        self.transaction_first_offset = -1
        self.batches: deque[BatchSpan] = deque(maxlen=BATCHES_REMEMBERED)
        self.next_sequence = 0
        self.is_restored = False  # by a snapshot, so that there are batches of this epoch that are not remembered

    def duplicate_of(self, epoch: int, first_sequence: int, last_sequence: int) -> BatchSpan | None:
        """Return the remembered batch with these sequence numbers."""
        if epoch == self.epoch:
            for batch in self.batches:
                if batch.first_sequence == first_sequence and batch.last_sequence == last_sequence:
                    return batch
        return None

    def enter_epoch(self, epoch: int) -> None:
        """Begin an epoch; batches of another one can no longer be retried."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.is_restored = False
            self.batches.clear()
            self.next_sequence = 0


class Producers:
    """The producers of one log, complete up to `end_offset`."""

    __slots__ = ("end_offset", "entries", "ongoing", "unreplicated", "verifications")

    def __init__(self, end_offset: int = 0) -> None:
        self.entries: dict[int, ProducerEntry] = {}
        # Open transactions by first offset, in that order, since they are begun by appending.
        self.ongoing: dict[int, int] = {}
        self.unreplicated: list[CompletedTransaction] = []
        self.verifications = Verifications()
        self.end_offset = end_offset

    def admit(
        self,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        count: int,
        *,
        transactional: bool,
        from_client: bool,
        verification: Verification | None = None,
    ) -> BatchSpan | None:
        """Return the batch that this one repeats, or None when it may be written; raise when it may not.

        With `verification`, a transaction that is not open yet is opened only if that still holds.
        """
        entry = self.entries.get(producer_id)
        if entry is not None and from_client:
            last_sequence = first_sequence + count - 1 & SEQUENCE_MAX
            duplicate = entry.duplicate_of(epoch, first_sequence, last_sequence)
            if duplicate is not None:
                return duplicate
        if verification is not None and not self.in_transaction(producer_id, epoch):
            self.verifications.check(producer_id, first_sequence, verification)
        if entry is None:
            return None
        if epoch < entry.epoch:
            raise BrokerError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id} wrote with epoch {epoch}, the last one seen is {entry.epoch}",
            )
        if from_client:
            self._check_sequence(entry, epoch, first_sequence, count)
        if entry.transaction_first_offset >= 0 and not transactional:
            raise BrokerError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {producer_id} has a transaction open and wrote outside of it",
            )
        return None

    def _check_sequence(self, entry: ProducerEntry, epoch: int, first_sequence: int, count: int) -> None:
        if epoch != entry.epoch:
            if first_sequence != 0 and entry.epoch != -1:
                raise BrokerError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"producer {entry.producer_id} began epoch {epoch} with sequence {first_sequence}, not 0",
                )
        elif entry.epoch != -1 and first_sequence != entry.next_sequence:
            behind = entry.next_sequence - first_sequence & SEQUENCE_MAX
            if entry.is_restored and count <= behind < _SEQUENCES_BEHIND_MAX:
                raise BrokerError(
                    ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
                    f"producer {entry.producer_id} sent sequence {first_sequence} again, {entry.next_sequence} is next",
                )
            raise BrokerError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {entry.producer_id} sent sequence {first_sequence}, expected {entry.next_sequence}",
            )

    def record(
        self,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        first_offset: int,
        last_offset: int,
        timestamp: int,
        transactional: bool,
    ) -> None:
        """Remember a batch that is in the log."""
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id, epoch)
        elif epoch != entry.epoch:
            entry.enter_epoch(epoch)
        last_sequence = (
            first_sequence + (last_offset - first_offset) & SEQUENCE_MAX if first_sequence >= 0 else -1
        )
        entry.batches.append(BatchSpan(first_sequence, last_sequence, first_offset, last_offset, timestamp))
        entry.next_sequence = last_sequence + 1 & SEQUENCE_MAX
        entry.last_timestamp = timestamp
        if transactional:
            self.verifications.forget(producer_id)
            if entry.transaction_first_offset < 0:
                entry.transaction_first_offset = first_offset
                self.ongoing[first_offset] = producer_id

    def in_transaction(self, producer_id: int, epoch: int) -> bool:
        """Say whether a producer has a transaction of this epoch open; under v2 the next has another."""
        entry = self.entries.get(producer_id)
        return entry is not None and entry.transaction_first_offset >= 0 and entry.epoch == epoch

    def admit_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, transaction_version: int
    ) -> None:
        """Raise when a marker comes from a coordinator or for an epoch that has been superseded."""
        entry = self.entries.get(producer_id)
        if entry is None:
            return
        stale = epoch <= entry.epoch if transaction_version >= 2 else epoch < entry.epoch
        if stale:
            # Transactions v2 raise the epoch with every marker, so an equal one is a retry of a marker already
            # written, which is harmless once the transaction has ended (KAFKA-19999).
            retry = epoch == entry.epoch and (entry.transaction_first_offset < 0 or epoch == _EPOCH_MAX)
            if not (transaction_version >= 2 and retry):
                raise BrokerError(
                    ErrorCode.INVALID_PRODUCER_EPOCH,
                    f"marker for producer {producer_id} has epoch {epoch}, the last one seen is {entry.epoch}",
                )
        if entry.coordinator_epoch > coordinator_epoch:
            raise BrokerError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"marker comes from coordinator epoch {coordinator_epoch}, {entry.coordinator_epoch} is known",
            )

    def complete(
        self,
        producer_id: int,
        epoch: int,
        coordinator_epoch: int,
        offset: int,
        timestamp: int,
        *,
        aborted: bool,
    ) -> CompletedTransaction | None:
        """End a producer's transaction with the marker at `offset`; None when it had written nothing here."""
        self.verifications.forget(producer_id)
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id, epoch)
        first_offset = entry.transaction_first_offset
        entry.enter_epoch(epoch)
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp = timestamp
        entry.transaction_first_offset = -1
        if first_offset < 0:
            return None
        self.ongoing.pop(first_offset, None)
        completed = CompletedTransaction(producer_id, first_offset, offset, aborted)
        self.unreplicated.append(completed)
        return completed

    def stable_after(self, completed: CompletedTransaction) -> int:
        """Return the last stable offset once `completed` has ended, whatever the high watermark is."""
        return next(iter(self.ongoing), completed.last_offset + 1)

    @property
    def first_ongoing_offset(self) -> int | None:
        """Where the oldest open transaction begins."""
        return next(iter(self.ongoing), None)

    def last_stable_offset(self, high_watermark: int) -> int:
        """Return up to where all transactions are decided, and the decisions replicated."""
        stable = high_watermark
        if self.unreplicated:
            self.unreplicated = [txn for txn in self.unreplicated if txn.last_offset >= high_watermark]
            stable = min([stable, *(txn.first_offset for txn in self.unreplicated)])
        if self.ongoing:
            stable = min(stable, next(iter(self.ongoing)))
        return stable

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that were quiet for long and have no transaction open; return how many."""
        self.verifications.expire(now_ms, expiration_ms)
        expired = [
            producer_id
            for producer_id, entry in self.entries.items()
            if entry.transaction_first_offset < 0 and now_ms - entry.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self.entries[producer_id]
        return len(expired)

    def load(self, snapshot: list[SnapshotEntry], end_offset: int) -> None:
        """Become what a snapshot taken at `end_offset` says."""
        self.clear(end_offset)
        for item in snapshot:
            entry = ProducerEntry(item.producer_id, item.epoch)
            entry.coordinator_epoch = item.coordinator_epoch
            entry.last_timestamp = item.timestamp
            entry.transaction_first_offset = item.transaction_first_offset
            if item.last_offset >= 0:
                last_sequence = item.last_sequence
                # The file gives the distance in offsets; sequence numbers wrap at the greatest int32.
                first_sequence = (
                    last_sequence - item.offset_delta & SEQUENCE_MAX if last_sequence >= 0 else -1
                )
                first_offset = item.last_offset - item.offset_delta
                entry.batches.append(
                    BatchSpan(first_sequence, last_sequence, first_offset, item.last_offset, item.timestamp)
                )
                entry.next_sequence = last_sequence + 1 & SEQUENCE_MAX
                entry.is_restored = last_sequence >= 0
            self.entries[item.producer_id] = entry
        open_offsets = {
            entry.transaction_first_offset: entry.producer_id
            for entry in self.entries.values()
            if entry.transaction_first_offset >= 0
        }
        self.ongoing = dict(sorted(open_offsets.items()))

    def snapshot(self) -> list[SnapshotEntry]:
        """Return what a snapshot file keeps."""
        items = []
        for entry in self.entries.values():
            last = entry.batches[-1] if entry.batches else None
            items.append(
                SnapshotEntry(
                    entry.producer_id,
                    entry.epoch,
                    last.last_sequence if last else -1,
                    last.last_offset if last else -1,
                    last.last_offset - last.first_offset if last else 0,
                    entry.last_timestamp,
                    entry.coordinator_epoch,
                    entry.transaction_first_offset,
                )
            )
        return items

    def clear(self, end_offset: int) -> None:
        """Know nothing, from `end_offset` on."""
        self.entries.clear()
        self.ongoing.clear()
        self.unreplicated.clear()
        self.verifications.clear()
        self.end_offset = end_offset
