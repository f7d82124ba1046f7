"""Fetches that wait at the leader for something to tell.

P1  A wait is bounded, whatever was asked for, and so is the number of those who wait: with more, the next one is told
    at once that there is nothing.
P2  Whoever hangs up while it waits is taken out when the driver says so (`event.Gone`), and has no answer.
P3  The next deadline is found without a look at all who wait. Deadlines do not come in order, since everybody names its
    own wait, so they are in a heap; an entry of one that has been answered stays until it is due, or until there are
    more such entries than fetches that wait.
"""

import heapq
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ottla.raft.event import Request

WAIT_MS_MAX = 5_000
PARKED_MAX = 4_096
_STALE_MIN = 64  # below, old entries are not worth a look


class Parked(NamedTuple):
    """One fetch; it has waited long enough at `deadline`."""

    request: Request
    fetch_offset: int
    size_bytes_max: int
    deadline: int


class ParkedFetches:
    """All who wait, in the order in which they came."""

    __slots__ = ("_by_number", "_by_token", "_deadlines", "_number")

    def __init__(self) -> None:
        self._number = 0
        self._by_number: dict[int, Parked] = {}
        self._by_token: dict[object, int] = {}
        self._deadlines: list[tuple[int, int]] = []  # each with the number of its fetch

    def __len__(self) -> int:
        return len(self._by_number)

    def __iter__(self) -> Iterator[Parked]:
        return iter(self._by_number.values())

    def add(self, parked: Parked) -> None:
        """Let a fetch wait."""
        self._number += 1
        self._by_number[self._number] = parked
        self._by_token[parked.request.token] = self._number
        if len(self._deadlines) >= 2 * len(self._by_number) + _STALE_MIN:
            self._deadlines = [(each.deadline, number) for number, each in self._by_number.items()]
            heapq.heapify(self._deadlines)
        else:
            heapq.heappush(self._deadlines, (parked.deadline, self._number))

    def drop(self, token: object) -> None:
        """Forget the fetch with this token, if it waits."""
        number = self._by_token.pop(token, None)
        if number is not None:
            del self._by_number[number]

    def take(self, wanted: Callable[[Parked], bool]) -> list[Parked]:
        """Take out those that are wanted, in their order."""
        found = [number for number, each in self._by_number.items() if wanted(each)]
        return [self._remove(number) for number in found]

    def take_all(self) -> list[Parked]:
        """Take out everybody."""
        taken = list(self._by_number.values())
        self._by_number.clear()
        self._by_token.clear()
        self._deadlines.clear()
        return taken

    def take_due(self, now: int) -> list[Parked]:
        """Take out those that have waited long enough, the one that was due first before the others."""
        due: list[Parked] = []
        while self._deadlines and self._deadlines[0][0] <= now:
            _, number = heapq.heappop(self._deadlines)
            if number in self._by_number:
                due.append(self._remove(number))
        return due

    @property
    def deadline(self) -> int | None:
        """When the next one has waited long enough; None while nobody waits."""
        while self._deadlines:
            deadline, number = self._deadlines[0]
            if number in self._by_number:
                return deadline
            heapq.heappop(self._deadlines)
        return None

    def _remove(self, number: int) -> Parked:
        parked = self._by_number.pop(number)
        self._by_token.pop(parked.request.token, None)
        return parked
