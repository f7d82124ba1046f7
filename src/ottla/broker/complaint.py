"""Complaints about clients: the first few are told one by one, a flood is told in one line.

Whoever sends nonsense must not be able to fill the operator's disk with remarks about it.
"""

from collections.abc import Callable

_LINES_MAX = 10
_WINDOW_S = 60.0


def place_of(error: BaseException) -> str:
    """Where an error was raised, as a suffix to its text; nothing if it was not."""
    trace = error.__traceback__
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f" ({trace.tb_frame.f_code.co_filename.rpartition('/ottla/')[2]}:{trace.tb_lineno})"


class Complaints:
    """Passes lines on to `report`, at most ten a minute, and says how many it kept back."""

    __slots__ = ("_began", "_kept_back", "_now", "_report", "_told", "total")

    def __init__(self, report: Callable[[str], None], now: Callable[[], float]) -> None:
        self._report = report
        self._now = now
        self._began = now()
        self._told = 0
        self._kept_back = 0
        self.total = 0

    def __call__(self, text: str) -> None:
        """Tell, or count."""
        self.total += 1
        now = self._now()
        if now - self._began >= _WINDOW_S:
            if self._kept_back:
                self._report(f"{self._kept_back} more complaints about clients were not printed")
            self._began, self._told, self._kept_back = now, 0, 0
        if self._told < _LINES_MAX:
            self._told += 1
            self._report(text)
        else:
            self._kept_back += 1
