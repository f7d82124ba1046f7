"""How far a long piece of work is: a bar on a terminal, a line now and then elsewhere, always on stderr."""

import shutil
import sys
from typing import IO

from ottla.cli.amount import duration_text
from ottla.cli.terminal import is_terminal
from ottla.world.clock import Clock, RealClock

BAR_SECONDS = 0.1
LINE_SECONDS = 5.0
WIDTH = 24


class Nothing:
    """No progress to show, where nobody looks on or there is something else to see."""

    def is_due(self) -> bool:
        """Say no."""
        return False

    def show(self, done: int, facts: str) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Have nothing to take away."""


class Progress:
    """One piece of work, `total` steps long if that is known. Close it when it is done or given up."""

    def __init__(
        self,
        total: int | None,
        stream: IO[str] | None = None,
        clock: Clock | None = None,
        columns: int | None = None,
    ) -> None:
        self._total = total
        self._stream = sys.stderr if stream is None else stream
        self._clock = RealClock() if clock is None else clock
        self._live = is_terminal(self._stream)
        self._columns = columns or shutil.get_terminal_size().columns
        self._started = self._clock.monotonic()
        self._next = self._started + (0 if self._live else LINE_SECONDS)

    def is_due(self) -> bool:
        """Say whether it is time to show something; cheap enough to ask after every step."""
        return self._clock.monotonic() >= self._next

    def show(self, done: int, facts: str) -> None:
        """Show how far it is, with what else there is to say, if it is time for that."""
        now = self._clock.monotonic()
        if now < self._next:
            return
        if self._live:
            self._next = now + BAR_SECONDS
            self._stream.write(f"\r\x1b[K{self._bar(done, now, facts)[: self._columns - 1]}")
        else:
            self._next = now + LINE_SECONDS
            part = f" ({done * 100 // self._total} %)" if self._total else ""
            self._stream.write(f"{done:,}{part}, {facts}\n")
        self._stream.flush()

    def _bar(self, done: int, now: float, facts: str) -> str:
        if not self._total:
            return f"{done:,}  {facts}"
        share = min(done / self._total, 1.0)
        full = int(share * WIDTH)
        elapsed = now - self._started
        known = 0 < share < 1 and elapsed >= 1
        remaining = f"  {duration_text(elapsed * (1 - share) / share)} left" if known else ""
        return f"[{'#' * full}{'.' * (WIDTH - full)}] {share * 100:3.0f} %  {facts}{remaining}"

    def close(self) -> None:
        """Take the bar away; lines stay."""
        if self._live:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
