"""How long things took, kept to a thousandth of each value in a few hundred counters.

A value keeps its eleven highest bits, so that any percentile is right to a part in a thousand whatever the number of
values.
"""

from typing import Any

PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9, 99.99)
_BITS = 11


class Latencies:
    """Counts of durations, in microseconds."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self.count = 0
        self.total_us = 0
        self.max_us = 0

    def add(self, seconds: float) -> None:
        """Take in one duration."""
        us = int(seconds * 1_000_000)
        shift = us.bit_length() - _BITS
        key = us >> shift << shift if shift > 0 else us
        self._counts[key] = self._counts.get(key, 0) + 1
        self.count += 1
        self.total_us += us
        if us > self.max_us:
            self.max_us = us

    def percentile_us(self, percent: float) -> int:
        """Return the least duration that so many percent do not exceed; 0 when there is none."""
        wanted = self.count * percent / 100
        seen = 0
        for key in sorted(self._counts):
            seen += self._counts[key]
            if seen >= wanted:
                return key
        return 0

    def summary(self) -> dict[str, Any]:
        """Return average, percentiles and maximum in milliseconds."""
        if not self.count:
            return {}
        return {
            "average_ms": round(self.total_us / self.count / 1000, 3),
            **{f"p{percent:g}_ms": round(self.percentile_us(percent) / 1000, 3) for percent in PERCENTILES},
            "max_ms": round(self.max_us / 1000, 3),
        }
