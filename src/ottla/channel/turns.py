"""Who goes on in the next turns of the loop, and in which order.

Q1  First who asked for little when last served, then who was not served yet, then the others, by what they have cost:
    start-time fair queueing. So a peer whose frames are dear waits behind those whose frames are not, and among such
    peers the loop is shared by cost, however many frames that is.
Q2  What was spent before anybody had to wait counts no more.

    add() --begin()--> ranked --pop()--> served --charge()
"""

from collections import deque
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.channel.connection import Connection

LIGHT, NEW = range(2)  # who asked for little when last served; who was not served yet, or asked for much


class Turns:
    """The connections that were put off."""

    __slots__ = ("_added", "_by_cost", "_least", "_most", "_numbers", "_ranks")

    def __init__(self) -> None:
        self._added: list[Connection] = []  # since the turn began
        self._ranks: tuple[deque[Connection], ...] = (deque(), deque())
        self._by_cost: list[tuple[int, int, Connection]] = []
        self._numbers = count()
        self._least = 0  # what each of those who wait has spent at least
        self._most = 0

    def __bool__(self) -> bool:
        return bool(self._added or self._by_cost or self._ranks[LIGHT] or self._ranks[NEW])

    def add(self, connection: "Connection") -> None:
        """Have a connection wait; it does not go on in the turn that is under way."""
        if not self:
            self._least = self._most  # Q2
        self._added.append(connection)

    def charge(self, connection: "Connection", cost: int) -> None:
        """Note what the serving of a connection has cost."""
        connection.spent = max(connection.spent, self._least) + cost
        self._most = max(self._most, connection.spent)

    def begin(self) -> None:
        """Begin a turn: rank those who were added."""
        added, self._added = self._added, []
        for connection in added:
            if connection.spent > self._least:
                heappush(self._by_cost, (connection.spent, next(self._numbers), connection))
            else:
                self._ranks[connection.rank].append(connection)

    def pop(self) -> "Connection | None":
        """Return who goes on next in this turn, if anybody is left."""
        for queue in self._ranks:
            if queue:
                return queue.popleft()
        if not self._by_cost:
            return None
        spent, _, connection = heappop(self._by_cost)
        self._least = max(self._least, spent)
        return connection
