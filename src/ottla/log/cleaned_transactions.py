"""Transactions as the cleaner meets them, front to back: which batches were aborted, which markers are still needed.

T3  A marker stays as long as a batch of its transaction stays in front of it, so no reader ever sees half a decision.
T4  An aborted transaction leaves the transaction index of the cleaned log with its last batch, not before.
"""

from collections.abc import Iterable

from ottla.log.transaction_index import AbortedTransaction
from ottla.wire.batch import Batch
from ottla.wire.control import ControlType


class CleanedTransactions:
    """The transactions open at the cleaner's position; feed it every batch in order."""

    __slots__ = ("_aborted", "_committed", "_pending", "_seen", "kept")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Know the aborted transactions that reach into what will be read."""
        self._pending = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTransaction] = {}
        self._seen: set[int] = set()
        self._committed: set[int] = set()
        # The aborted transactions whose marker stays, for the index of the segment that is being written.
        self.kept: list[AbortedTransaction] = []

    def on_data(self, batch: Batch) -> bool:
        """Take note of a batch of records; say whether its transaction was aborted."""
        self._open(batch.last_offset)
        if not batch.is_transactional:
            return False
        producer_id = batch.producer_id
        if producer_id in self._aborted:
            self._seen.add(producer_id)
            return True
        self._committed.add(producer_id)
        return False

    def on_marker(self, batch: Batch, kind: ControlType | None) -> bool:
        """Take note of a control batch, whose type is None when it is empty; say whether nobody needs it any more."""
        self._open(batch.last_offset)
        producer_id = batch.producer_id
        if kind is ControlType.ABORT:
            aborted = self._aborted.pop(producer_id, None)
            if aborted is None or producer_id not in self._seen:
                return True
            self._seen.discard(producer_id)
            self.kept.append(aborted)
            return False
        if kind is ControlType.COMMIT:
            if producer_id not in self._committed:
                return True
            self._committed.discard(producer_id)
            return False
        return kind is None

    def _open(self, offset: int) -> None:
        pending = self._pending
        while pending and pending[-1].first_offset <= offset:
            aborted = pending.pop()
            self._aborted.setdefault(aborted.producer_id, aborted)
