"""Bytes that all connections of a node hold together, in one direction, and who waits while they are used up.

B1  `total` is the sum of what the holders hold. It passes `bytes_max` by no more than one answer, or one request; for
    answers of modest size there is a quarter of it more (`modest_max`), which nobody else may use.
B2  Whoever has to wait goes on in the order in which it came, as soon as there is room for it.
B3  While somebody waits, a holder whose peer takes (of a request: sends) next to nothing for some seconds, or little
    beside what it holds, is closed, the one that holds most first, until there is room for several others.

    hold() --is_full--> wait() --hold() of another, forget(), _check()--> called back
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

CHECK_S = 1.0
STILL_BYTES = 64 << 10  # who moves less between two checks stands still
LARGE_S = 10  # in which who holds more than a sixteenth of all has to be done with it, while others wait
SMALL_S = 30  # the same for who holds less
_STILL_CHECKS = 2  # after the one that has set the mark: a peer has had two to three seconds
_WOKEN_A_TURN = 16
_SHARES = 16

Timer = Callable[[float, Callable[[], object]], Any]


class Holder(Protocol):
    """A connection, as far as its bytes are concerned."""

    def taken_bytes(self) -> int:
        """Return how much of its answers the peer has taken, counted from any point."""
        ...

    def received_bytes(self) -> int:
        """Return how much of its request the peer has sent."""
        ...

    def abort(self) -> None:
        """Close at once, whatever was not sent."""
        ...


class _Holding:
    """What one connection holds, and for how many checks it has stood still."""

    __slots__ = ("moved", "size_bytes", "still")

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.moved: int | None = None  # when it was last looked at
        self.still = 0


class Budget:
    """Bytes of answers that are ready."""

    __slots__ = (
        "_call_later",
        "_call_soon",
        "_checking",
        "_first",
        "_holdings",
        "_waiting",
        "_waking",
        "aborted",
        "bytes_max",
        "first_share",
        "is_crowded",
        "is_full",
        "modest_max",
        "queued",
        "total",
    )

    def __init__(
        self, bytes_max: int, call_soon: Callable[[Callable[[], None]], object], call_later: Timer | None = None
    ) -> None:
        self.bytes_max = bytes_max
        self.first_share = bytes_max // _SHARES  # of who comes while nobody holds anything
        self.modest_max = bytes_max + bytes_max // 4
        self.total = 0
        self.queued = 0  # of it, whole requests that wait for a thread: their peers cannot do anything about them
        self.is_full = False  # whether who comes now has to wait: there is no room, or others wait for it
        self.aborted = 0  # connections closed by B3
        self._call_soon = call_soon
        self._call_later = call_later
        self._holdings: dict[Holder, _Holding] = {}
        self._waiting: deque[tuple[Holder, Callable[[], None], int]] = deque()  # and how much it is to hold more
        self._first: Holder | None = None  # who may go on though there is no room, so that somebody always can
        self._waking = False
        self._checking = False
        self.is_crowded: Callable[[], bool] = lambda: False  # whether the loop has had enough for this turn

    @property
    def holders(self) -> int:
        """How many connections hold something."""
        return len(self._holdings)

    @property
    def waiting(self) -> int:
        """How many wait for room."""
        return len(self._waiting)

    def share(self) -> int:
        """Return how much of the room one more holder may take: less, the more of them there are.

        The sum of all shares grows with the logarithm of their number, so that a thousand connections that take nothing
        of their answers leave room for the next one.
        """
        room = self.bytes_max - self.total
        return max(0, min(room, self.bytes_max // (_SHARES * (len(self._holdings) + 1))))

    def hold(self, holder: Holder, size_bytes: int) -> None:
        """Note how much a connection holds by now."""
        holding = self._holdings.get(holder)
        if holding is None:
            if not size_bytes:
                return
            self._holdings[holder] = _Holding(size_bytes)
            self.total += size_bytes
        else:
            self.total += size_bytes - holding.size_bytes
            if size_bytes:
                holding.size_bytes = size_bytes
            else:
                del self._holdings[holder]
                if self._first is holder:
                    self._first = None
            self._wake_soon()
        self.is_full = self.total >= self.bytes_max or bool(self._waiting)
        if self.total > self.bytes_max // 2 and not self._checking:
            self._start_checks()

    def wait(self, holder: Holder, callback: Callable[[], None], size_bytes: int = 0) -> None:
        """Call back once there is room, for `size_bytes` more where that is known, and it is this one's turn (B2)."""
        self._waiting.append((holder, callback, size_bytes))
        self.is_full = True
        self._close_still()
        if not self._checking:
            self._start_checks()

    def forget(self, holder: Holder) -> None:
        """A connection is gone, with all it held or waited for."""
        if self._waiting:
            self._waiting = deque(each for each in self._waiting if each[0] is not holder)
        if self._first is holder:
            self._first = None
        self.hold(holder, 0)
        self._wake_soon()

    def _wake_soon(self) -> None:
        if self._waiting and not self._waking and self._may_go_on():
            self._waking = True
            self._call_soon(self._wake)

    def _wake(self) -> None:
        self._waking = False
        left = _WOKEN_A_TURN
        while self._waiting and left and self._may_go_on() and not self.is_crowded():
            left -= 1
            self._next()
        self.is_full = self.total >= self.bytes_max or bool(self._waiting)
        self._wake_soon()

    def _may_go_on(self) -> bool:
        """Whether the first of those who wait need not wait any longer."""
        return self.total < self.bytes_max

    def _next(self) -> None:
        self._waiting.popleft()[1]()

    def _moved(self, holder: Holder) -> int:
        return holder.taken_bytes()

    def _start_checks(self) -> None:
        if self._call_later is not None:
            self._checking = True
            for holding in self._holdings.values():
                holding.still, holding.moved = 0, None
            self._call_later(CHECK_S, self._check)

    def _check(self) -> None:
        """See who stands still, while much is held or somebody waits."""
        if not self._waiting and self.total <= self.bytes_max // 2:
            self._checking = False
            return
        for holder, holding in self._holdings.items():
            moved = self._moved(holder)
            is_still = holding.moved is not None and moved - holding.moved < self._least(holding.size_bytes)
            holding.still = holding.still + 1 if is_still else 0
            holding.moved = moved
        self._close_still()
        if self._call_later is not None:
            self._call_later(CHECK_S, self._check)

    def _least(self, size_bytes: int) -> int:
        """Return how much has to move in a second of what is held (B3)."""
        return max(STILL_BYTES, size_bytes // (LARGE_S if size_bytes > self.first_share else SMALL_S))

    def _close_still(self) -> None:
        """Close who stands still, if somebody waits for what they hold (B3)."""
        if not self._waiting or self._may_go_on():
            return
        still = [each for each in self._holdings.items() if each[1].still >= _STILL_CHECKS]
        waiting = {each[0] for each in self._waiting}  # of a request, who waits could not move
        still.sort(key=lambda each: (each[0] in waiting, -each[1].size_bytes))
        left, enough = self.total - self.queued, self.bytes_max - self.bytes_max // 4
        for holder, holding in still:
            if left <= enough:
                break
            left -= holding.size_bytes
            holding.still = 0  # it is closed once
            self.aborted += 1
            holder.abort()


class RequestBudget(Budget):
    """Bytes of requests that have arrived in part, or are whole and wait for a thread.

    One request at a time may go on beyond the limit: where all hold a part of theirs and none could have the rest, none
    would ever be whole. While requests that are whole use up the room there is no need for that: they will be served.
    """

    __slots__ = ("_called",)

    def __init__(
        self, bytes_max: int, call_soon: Callable[[Callable[[], None]], object], call_later: Timer | None = None
    ) -> None:
        super().__init__(bytes_max, call_soon, call_later)
        self._called: Holder | None = None  # who has waited, and is called back

    def admits(self, holder: Holder, size_bytes: int) -> bool:
        """Say whether a connection may hold so much more."""
        if holder is self._first or holder is self._called:
            return True
        if self._waiting:
            return False
        if self.total + size_bytes <= self.bytes_max:
            return True
        if self._first is None and not self.has_long_queue:
            self._first = holder
            return True
        return False

    def add_queued(self, size_bytes: int) -> None:
        """Count bytes of a whole request that are to be looked through; less than none when that is done."""
        self.queued += size_bytes
        self.total += size_bytes
        self.is_full = self.total >= self.bytes_max or bool(self._waiting)
        self._wake_soon()

    @property
    def has_long_queue(self) -> bool:
        """Whether what waits to be looked through takes half of the room, or more."""
        return self.queued >= self.bytes_max // 2

    def _moved(self, holder: Holder) -> int:
        return holder.received_bytes()

    def _may_go_on(self) -> bool:
        has_turn = self._first is None and not self.has_long_queue
        return has_turn or self.total + self._waiting[0][2] <= self.bytes_max

    def _next(self) -> None:
        holder, callback, size_bytes = self._waiting.popleft()
        if self.total + size_bytes > self.bytes_max:
            self._first = holder
        self._called = holder
        try:
            callback()
        finally:
            self._called = None
        if self._first is holder and self.total < self.bytes_max:
            self._first = None  # it has had its turn, and there is room for another
