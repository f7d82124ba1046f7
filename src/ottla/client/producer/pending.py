"""Every batch that was begun and has not ended, the oldest first.

P1  A batch ends within `delivery.timeout.ms` of its first record, wherever it is.
P2  A flush ends when the last batch does that was begun before it. What a batch was split into counts as that batch.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator

from ottla.client.producer.batch import Batch


class Pending:
    """The batches under way."""

    __slots__ = ("_batches", "_flushes", "_serial", "_timeout_s")

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._serial = 0
        self._batches: OrderedDict[Batch, int] = OrderedDict()
        self._flushes: deque[tuple[int, Callable[[], object]]] = deque()

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[Batch]:
        """Yield what has not ended, parts in the place of what was split."""
        for batch in tuple(self._batches):
            for leaf in batch.leaves():
                if not leaf.done:
                    yield leaf

    def add(self, batch: Batch) -> None:
        """Take in a batch that was begun."""
        self._serial += 1
        self._batches[batch] = self._serial

    def remove(self, batch: Batch) -> None:
        """Take out a batch that has ended, with all its parts."""
        self._batches.pop(batch, None)
        flushes = self._flushes
        if flushes:
            oldest = next(iter(self._batches.values()), self._serial + 1)
            while flushes and flushes[0][0] < oldest:
                flushes.popleft()[1]()

    def flush(self, tell: Callable[[], object]) -> None:
        """Have `tell` called when everything begun until now has ended."""
        if not self._batches:
            tell()
        else:
            self._flushes.append((self._serial, tell))

    def overdue(self, now: float) -> list[Batch]:
        """Return what has had its time and has not ended."""
        found: list[Batch] = []
        for batch in self._batches:
            if batch.created_at + self._timeout_s > now:
                break
            found += (leaf for leaf in batch.leaves() if not leaf.done)
        return found

    def next_time(self) -> float:
        """Return when the oldest will have had its time, or infinity."""
        oldest = next(iter(self._batches), None)
        return float("inf") if oldest is None else oldest.created_at + self._timeout_s
