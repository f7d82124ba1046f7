"""Records and bytes against the clock: since the beginning, and since it was last asked."""

from typing import Any

from ottla.cli.amount import size_text
from ottla.world.clock import Clock, RealClock


class Speed:
    """Counts that know how old they are."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = RealClock() if clock is None else clock
        self._started = self._last_at = self._clock.monotonic()
        self._last_records = self._last_bytes = 0
        self.records = 0
        self.bytes = 0

    def begin(self) -> None:
        """Count the time from now on."""
        self._started = self._last_at = self._clock.monotonic()

    @property
    def seconds(self) -> float:
        """How long it has been going on."""
        return self._clock.monotonic() - self._started

    def lately(self) -> str:
        """Return the rates since this was last asked, as text."""
        now = self._clock.monotonic()
        seconds = max(now - self._last_at, 1e-9)
        records = (self.records - self._last_records) / seconds
        size = (self.bytes - self._last_bytes) / seconds
        self._last_at, self._last_records, self._last_bytes = now, self.records, self.bytes
        return rates_text(records, size)

    def summary(self) -> dict[str, Any]:
        """Return counts, and rates since the beginning."""
        seconds = max(self.seconds, 1e-9)
        return {
            "records": self.records,
            "bytes": self.bytes,
            "seconds": round(seconds, 3),
            "records_per_second": round(self.records / seconds, 1),
            "bytes_per_second": round(self.bytes / seconds, 1),
        }


def rates_text(records_per_second: float, bytes_per_second: float) -> str:
    """Return rates as people read them."""
    return f"{records_per_second:,.0f} records/s, {size_text(bytes_per_second)}/s"
