"""Upkeep: what a broker does for its logs without being asked.

Each chore has its own interval and costs what changed since its last turn: checkpoints are written when an offset in
them moved, retention visits logs that may have something to give, cleaning runs in a thread. Intervals are read at each
turn, so a changed setting holds from the next one on.
"""

from collections.abc import Callable
from typing import Any, Protocol

_DELAY_S_MAX = 30 * 86_400.0


class Timers(Protocol):
    """The loop, as far as chores need it."""

    def call_later(self, delay: float, callback: Callable[[], object]) -> Any:
        """Call after `delay` seconds; the result has `cancel()`."""
        ...


class Chore:
    """Something done every `interval_ms()` milliseconds. A chore that fails is reported and tried again next time."""

    __slots__ = ("_interval_ms", "_report", "_timer", "_timers", "_work", "name", "turns")

    def __init__(
        self,
        name: str,
        interval_ms: Callable[[], int],
        work: Callable[[], None],
        timers: Timers,
        report: Callable[[str], None],
    ) -> None:
        self.name = name
        self.turns = 0
        self._interval_ms = interval_ms
        self._work = work
        self._timers = timers
        self._report = report
        self._timer: Any = None
        self._arm()

    def _arm(self) -> None:
        # Kafka's "never" is a number of milliseconds that no timer can count to.
        delay_s = min(self._interval_ms() / 1000, _DELAY_S_MAX)
        self._timer = self._timers.call_later(delay_s, self._turn)

    def _turn(self) -> None:
        self.turns += 1
        try:
            self._work()
        except Exception as error:  # noqa: BLE001  # a chore must not end the broker
            self._report(f"{self.name} failed and is tried again later: {error!r}")
        self._arm()

    def stop(self) -> None:
        """Do it no more."""
        self._timer.cancel()
