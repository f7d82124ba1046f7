"""Deadlines by key: the earliest is at hand, and setting one anew costs nothing but a line in a heap.

A deadline that was moved or cancelled stays in the heap until it comes to the top, so each one is held against the
table when it does. The heap is made anew once most of it is such waste.
"""

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
_WASTE_MIN = 1_000


class Timers(Generic[Key]):
    """What is due when."""

    __slots__ = ("_count", "_heap", "_set")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Key]] = []
        self._set: dict[Key, tuple[int, int]] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._set)

    def __contains__(self, key: Key) -> bool:
        return key in self._set

    def set(self, key: Key, deadline_ms: int) -> None:
        """Let `key` be due at `deadline_ms`, and no longer when it was."""
        self._count += 1
        self._set[key] = (deadline_ms, self._count)
        heapq.heappush(self._heap, (deadline_ms, self._count, key))
        if len(self._heap) > max(_WASTE_MIN, 4 * len(self._set)):
            self._heap = [(deadline, number, key) for key, (deadline, number) in self._set.items()]
            heapq.heapify(self._heap)

    def cancel(self, key: Key) -> None:
        """Let `key` never be due."""
        self._set.pop(key, None)

    def shift(self, by_ms: int) -> None:
        """Let everything be due so much later, or earlier below zero: the clock has jumped."""
        self._set = {key: (deadline + by_ms, number) for key, (deadline, number) in self._set.items()}
        self._heap = [(deadline, number, key) for key, (deadline, number) in self._set.items()]
        heapq.heapify(self._heap)

    @property
    def next_deadline(self) -> int | None:
        """When the first key is due; None when there is none."""
        heap = self._heap
        while heap:
            deadline, number, key = heap[0]
            if self._set.get(key) == (deadline, number):
                return deadline
            heapq.heappop(heap)
        return None

    def due(self, now: int) -> list[Key]:
        """Return the keys that are due, in order, and forget them."""
        found = []
        while (deadline := self.next_deadline) is not None and deadline <= now:
            key = heapq.heappop(self._heap)[2]
            del self._set[key]
            found.append(key)
        return found
