"""Upkeep: what a broker does for its logs without being asked.

Each chore has its own interval and costs what changed since its last turn: checkpoints are written when an offset in
them moved, retention visits logs that may have something to give, cleaning runs in a thread. Intervals are read at each
turn, so a changed setting holds from the next one on.
"""

import traceback
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from ottla.wire.errors import BrokerError

_DELAY_S_MAX = 30 * 86_400.0
T = TypeVar("T")


class Timers(Protocol):
    """The loop, as far as chores need it."""

    def call_later(self, delay: float, callback: Callable[[], object]) -> Any:
        """Call after `delay` seconds; the result has `cancel()`."""
        ...


def for_each(
    items: Iterable[T],
    work: Callable[[T], object],
    name: Callable[[T], str],
    report: Callable[[str], None],
) -> None:
    """Do something with every item: one that fails does not keep the next from its turn.

    The first failure is told, with the number of the others; and the way that the first bug came.
    """
    failures: list[tuple[T, Exception]] = []
    for item in items:
        try:
            work(item)
        except Exception as error:  # noqa: BLE001  # that of one is no reason to leave out the others
            failures.append((item, error))
    if failures:
        first, failure = failures[0]
        others = f", as has that of {len(failures) - 1} more" if len(failures) > 1 else ""
        report(f"{name(first)} has failed{others}, and is tried again later: {failure}")
    for item, failure in failures:
        if not isinstance(failure, (OSError, BrokerError)):
            way = "".join(traceback.format_exception(failure)).rstrip()
            report(f"a bug of Ottla, please report it: {name(item)}: {way}")
            return


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
