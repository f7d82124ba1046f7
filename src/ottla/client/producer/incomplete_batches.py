"""The batches without an outcome, the oldest first.

P1  A batch ends within `delivery.timeout.ms` of its first record.
P2  A flush ends when all batches that were begun before it have ended. The parts of a split batch count as that batch.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator

from ottla.client.producer.batch import ProducerBatch


class IncompleteBatches:
    """The batches of one producer that have no outcome yet."""

    __slots__ = ("_batches", "_flushes", "_serial", "_timeout_s")

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._serial = 0
        self._batches: OrderedDict[ProducerBatch, int] = OrderedDict()
        self._flushes: deque[tuple[int, Callable[[], object]]] = deque()

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[ProducerBatch]:
        """Yield the batches that have not ended, with the parts of split batches in their place."""
        for batch in tuple(self._batches):
            for leaf in batch.final_parts():
                if not leaf.done:
                    yield leaf

    def add(self, batch: ProducerBatch) -> None:
        """Add a batch that was begun."""
        self._serial += 1
        self._batches[batch] = self._serial

    def remove(self, batch: ProducerBatch) -> None:
        """Remove a batch that has ended with all its parts."""
        self._batches.pop(batch, None)
        flushes = self._flushes
        if flushes:
            oldest = next(iter(self._batches.values()), self._serial + 1)
            while flushes and flushes[0][0] < oldest:
                flushes.popleft()[1]()

    def flush(self, notify: Callable[[], object]) -> None:
        """Call `notify` when all batches that were begun until now have ended."""
        if not self._batches:
            notify()
        else:
            self._flushes.append((self._serial, notify))

    def overdue(self, now: float) -> list[ProducerBatch]:
        """Return the batches that have reached delivery.timeout.ms."""
        found: list[ProducerBatch] = []
        for batch in self._batches:
            if batch.created_at + self._timeout_s > now:
                break
            found += (leaf for leaf in batch.final_parts() if not leaf.done)
        return found

    def next_time(self) -> float:
        """Return when the oldest batch will expire, or infinity."""
        oldest = next(iter(self._batches), None)
        return float("inf") if oldest is None else oldest.created_at + self._timeout_s
