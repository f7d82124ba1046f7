"""Prints records and knows when it is enough."""

from collections.abc import Iterable

from ottla.cli.formats.writer import Write
from ottla.cli.progress import Nothing, Progress
from ottla.cli.stream import Outlet
from ottla.client.record import Record
from ottla.world.clock import Clock, RealClock

POLL_MS = 500
RECORDS_MAX = 10_000


class Tally:
    """How many records were printed, how many still may be, and when the last one came."""

    def __init__(
        self, write: Write, count: int | None = None, idle_ms: int | None = None, clock: Clock | None = None
    ) -> None:
        self.progress: Progress | Nothing = Nothing()
        self._write = write
        self._count = count
        self._idle_ms = idle_ms
        self._clock = RealClock() if clock is None else clock
        self._heard_at = self._clock.monotonic()
        self.printed = 0

    @property
    def is_full(self) -> bool:
        """Whether as many were printed as were asked for."""
        return self._count is not None and self.printed >= self._count

    @property
    def is_idle(self) -> bool:
        """Whether nothing has come for as long as was said."""
        return self._idle_ms is not None and self._silence_ms() >= self._idle_ms

    def _silence_ms(self) -> float:
        return (self._clock.monotonic() - self._heard_at) * 1000

    @property
    def records_max(self) -> int:
        """How many records to take at once: no more than will be printed, so that no more count as read."""
        return RECORDS_MAX if self._count is None else min(RECORDS_MAX, self._count - self.printed)

    @property
    def poll_ms(self) -> int:
        """How long to wait for records at a time."""
        if self._idle_ms is None:
            return POLL_MS
        return max(1, min(POLL_MS, int(self._idle_ms - self._silence_ms()) + 1))

    async def print(self, records: Iterable[Record], outlet: Outlet) -> None:
        """Print records, which came just now."""
        parts = []
        for record in records:
            self.printed += 1
            parts.append(self._write(record, self.printed))
        if parts:
            self._heard_at = self._clock.monotonic()
            await outlet.write(b"".join(parts))
            if self.progress.is_due():
                self.progress.show(self.printed, f"{self.printed:,} records")
        else:
            outlet.check()
