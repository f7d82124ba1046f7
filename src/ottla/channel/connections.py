"""Every open connection of some listeners: how many there may be, and what they may hold together.

A1  `max.connections` limits all of them, `max.connections.per.ip` those of an address, and
    `listener.name.<name>.max.connections` those of a listener. Whoever comes above a limit is closed.
A2  No flood of clients shuts out the other brokers, where these have a listener of their own: above the first of those
    limits they come in nevertheless, and the connection of another listener that was silent the longest is closed.
    Above `open_max`, which keeps descriptors back for files, they come in only if there is one to close.

A3  Nobody waits for the many requests of others: a turn of the loop serves about eight megabytes of answers; what is
    read then, and whatever was left of those before, is served in the turns that follow, a megabyte each, and in them
    first who has asked for little, then who is new, then the others by what they have cost (`turns.py`). A byte that
    has to be encoded counts as several of records, and the time that a request has taken counts as well, since what is
    dear may have a small answer, or none yet.
    Those who waited for what a read has brought are answered likewise: 512 of them or eight megabytes with the read,
    512 or a megabyte in each turn after it, in the order in which they were woken.

Answers that are ready and requests that are not whole are limited in bytes (`budget.py`).
"""

import asyncio
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.channel.budget import Budget, RequestBudget, Timer
from ottla.channel.receive_buffer import ReceiveBuffer
from ottla.channel.turns import LIGHT, NEW, Turns
from ottla.world.network import Push

if TYPE_CHECKING:
    from ottla.channel.connection import Connection

BUDGET_BYTES = 256 << 20
HELD_BYTES_MAX = 1 << 20  # of answers; with more, a connection is served no further request
_HELD_BYTES_MIN = 16 << 10  # the same while little is left of the budget
# The compiled part is told these numbers (`swift.py`); costs are in bytes of records.
TURN_COST_MAX = 1 << 20
LOOP_COST_MAX = 8 << 20
LIGHT_COST_MAX = 64 << 10
COST_A_SECOND = 200 * TURN_COST_MAX  # of serving: what takes 5 ms ends a turn, whatever it is answered
_QUICK_S = 100e-6  # what takes less is not counted: 64 frames of it are as long as a turn may be
DUE_A_TURN = 512  # who waited for what a read has brought


class Connections:
    """The connections that share limits, a buffer to receive into, and the order of what a read brings about."""

    __slots__ = (
        "_is_scheduled",
        "_soon",
        "_turns",
        "accepted",
        "answers",
        "at_end",
        "by_address",
        "by_listener",
        "call_soon",
        "crowded",
        "due",
        "frame_bytes_max",
        "loop_cost",
        "on_empty",
        "open",
        "open_max",
        "per_address_max",
        "per_listener_max",
        "protected",
        "pusher",
        "receive",
        "refused",
        "requests",
        "tick",
        "total_max",
        "turn_cost",
    )

    def __init__(
        self,
        *,
        frame_bytes_max: int,
        total_max: int,
        per_address_max: int,
        call_soon: Callable[[Callable[[], None]], object],
        pusher: Callable[[asyncio.BaseTransport], Push | None] = lambda _: None,
        answer_bytes_max: int = BUDGET_BYTES,
        request_bytes_max: int = BUDGET_BYTES,
        call_later: Timer | None = None,
    ) -> None:
        self.call_soon = call_soon
        self.answers = Budget(answer_bytes_max, call_soon, call_later)
        self.requests = RequestBudget(max(request_bytes_max, frame_bytes_max), call_soon, call_later)
        self.turn_cost = 0  # of what was served in the read under way
        self.crowded = False  # whether the loop has had enough for this turn
        self.loop_cost = 0
        self._turns = Turns()
        self.answers.is_crowded = lambda: self.crowded
        self._is_scheduled = False
        self._soon: list[Callable[[], None]] = []  # what was asked for outside of a read
        self.pusher = pusher
        # What runs after the frames of the read under way; None outside of one.
        self.due: list[Callable[[], None]] | None = None
        self.at_end = False  # whether the frame under way is the last of its read
        self.receive = ReceiveBuffer()
        self.open: dict[Connection, None] = {}
        self.by_address: dict[str, int] = {}
        self.by_listener: dict[str, int] = {}
        self.per_listener_max: dict[str, int] = {}
        self.protected: str | None = None  # the listener of the other brokers (A2)
        self.frame_bytes_max = frame_bytes_max
        self.total_max = total_max
        self.open_max = sys.maxsize  # of all listeners, the protected one too
        self.per_address_max = per_address_max
        self.on_empty: Callable[[], object] | None = None
        self.accepted = 0
        self.refused = 0
        self.tick = 0

    # How many

    def admit(self, connection: "Connection") -> bool:
        """Count a new connection in, or refuse it over a limit."""
        address, listener = connection.peer, connection.listener
        on_listener = self.by_listener.get(listener, 0)
        is_full = len(self.open) >= min(self.total_max, self.open_max)
        if (
            (is_full and listener != self.protected)
            or on_listener >= self.per_listener_max.get(listener, on_listener + 1)
            or self.by_address.get(address, 0) >= self.per_address_max
            or (is_full and not self._make_way() and len(self.open) >= self.open_max)
        ):
            self.refused += 1
            return False
        self.accepted += 1
        self.by_listener[listener] = on_listener + 1
        self.open[connection] = None
        self.by_address[address] = self.by_address.get(address, 0) + 1
        return True

    def _make_way(self) -> bool:
        """Close the connection of a client that was silent the longest, or is closed (A2); False without clients."""
        clients = [each for each in self.open if each.listener != self.protected]
        if clients:
            self.refused += 1
            min(clients, key=lambda each: (not each.closed, each.touched)).abort()
        return bool(clients)

    def forget(self, connection: "Connection") -> None:
        """Count a connection out."""
        self.answers.forget(connection)
        self.requests.forget(connection)
        if connection in self.open:
            del self.open[connection]
            self.by_listener[connection.listener] -= 1
            left = self.by_address[connection.peer] - 1
            if left:
                self.by_address[connection.peer] = left
            else:
                del self.by_address[connection.peer]
            if not self.open and self.on_empty is not None:
                self.on_empty()

    def close_idle(self, ticks_max: int) -> int:
        """Start a new tick; close whoever sent nothing for `ticks_max` of them and is owed nothing, or was closed."""
        self.tick += 1
        idle = [
            c
            for c in self.open
            if (self.tick - c.closed_tick > 1 if c.closed else self.tick - c.touched > ticks_max and not c.owed)
        ]
        for connection in idle:
            connection.close()
        return len(idle)

    # What a read brings about

    def soon(self, callback: Callable[[], None]) -> None:
        """Call back once the frames of the read under way are served (law C7), or else at the end of the turn."""
        if self.due is not None:
            self.due.append(callback)
        else:
            self._soon.append(callback)
            if len(self._soon) == 1:
                self.call_soon(self._call_soon)

    def _call_soon(self) -> None:
        due, self._soon = self._soon, []
        self.due, self.turn_cost = [], 0  # so that whoever may go on now has a turn of its own (C10 of a connection)
        try:
            self._call_back(due, TURN_COST_MAX)
        finally:
            more, self.due = self.due, None
            for callback in more or ():
                self.soon(callback)

    def settle_due(self) -> None:
        """Call back all who asked for it during the read under way; where they are too many for a turn, the first."""
        due, self.due = self.due, []
        self._call_back(due or [], LOOP_COST_MAX)

    def _call_back(self, due: list[Callable[[], None]], cost_max: int) -> None:
        called = cost = 0
        try:
            for callback in due[:DUE_A_TURN]:
                called += 1
                before = self.turn_cost
                callback()
                cost += self.turn_cost - before
                if cost > cost_max:
                    break
        finally:
            if len(due) > called:  # too much for a turn, or one has broken, which is no reason to forget the others
                if not self._soon:
                    self.call_soon(self._call_soon)
                self._soon += due[called:]

    def spend(self, seconds: float) -> None:
        """Count the time that a request has taken of the loop, by a clock that stands still in a simulation."""
        if seconds > _QUICK_S:
            self.turn_cost += int(seconds * COST_A_SECOND)

    def turn_over(self, connection: "Connection") -> None:
        """Count what the read under way has cost, now that all its frames, or enough of them, are served."""
        cost = self.turn_cost
        connection.rank = LIGHT if cost <= LIGHT_COST_MAX else NEW
        self._charge(connection, cost)

    def spend_outside(self, connection: "Connection", seconds: float) -> None:
        """Count the time of a request that was served outside of a read."""
        if seconds > _QUICK_S:
            self._charge(connection, int(seconds * COST_A_SECOND))

    def _charge(self, connection: "Connection", cost: int) -> None:
        if cost > LIGHT_COST_MAX:
            self._turns.charge(connection, cost)
        self.loop_cost += cost
        if self.loop_cost > LOOP_COST_MAX and not self.crowded:
            self.crowded = True
            self._schedule()

    def put_off(self, connection: "Connection") -> None:
        """Go on with a connection's frames in the next turn of the loop, or in one after it (A3), and not before."""
        if connection.is_put_off:
            return
        connection.is_put_off = True
        self._turns.add(connection)
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._is_scheduled = self.crowded = False
        self.loop_cost = 0
        turns = self._turns
        turns.begin()
        try:
            while self.loop_cost <= TURN_COST_MAX and (connection := turns.pop()) is not None:
                connection.is_put_off = False
                self._let_go_on(connection)
        finally:
            if turns:
                self._schedule()

    def _let_go_on(self, connection: "Connection") -> None:
        try:
            connection.go_on()
        except Exception:
            connection.abort()  # nobody else would: it is the transport that closes it where a read breaks
            raise

    # How much

    @property
    def held_bytes_max(self) -> int:
        """How many bytes of answers a connection may hold before it is served no further request."""
        return max(_HELD_BYTES_MIN, min(HELD_BYTES_MAX, self.answers.share()))

    def answer_bytes_max(self, connection: "Connection") -> int:
        """Return how many bytes of records the next answer of a connection may have; 0 for none now."""
        if self.turn_cost > TURN_COST_MAX and connection.is_corked:
            return 0  # what it has got in the read under way is not counted yet
        answers = self.answers
        if not answers.total:
            return answers.first_share
        return 0 if connection.held and connection.held > self.held_bytes_max else answers.share()
