"""The line that says how an app goes: rates, lag, batch time. On a terminal it stays where it is; elsewhere it is
said now and then.
"""

import json
from collections.abc import Mapping
from typing import IO, Any

from ottla.world.clock import Clock, RealClock

_LINE_SECONDS = 10.0


def status(name: str, progress: Mapping[str, Any] | None) -> str:
    """Return the line for what Spark last said of a query, or None while it has said nothing."""
    if progress is None:
        return f"{name}  starting"
    took_ms = (progress.get("durationMs") or {}).get("triggerExecution", 0)
    parts = [
        f"batch {progress.get('batchId', 0):,}",
        f"{_rate(progress.get('inputRowsPerSecond'))} in/s",
        f"{_rate(progress.get('processedRowsPerSecond'))} done/s",
        f"lag {_lag_text(progress)}",
        f"{took_ms / 1000:.2f} s a batch",
    ]
    kept = sum(each.get("numRowsTotal", 0) for each in progress.get("stateOperators") or ())
    if progress.get("stateOperators"):
        parts.append(f"{kept:,} in state")
    return f"{name}  " + "  ".join(parts)


def _rate(given: Any) -> str:
    # What Spark cannot say is NaN or missing.
    return f"{given:,.0f}" if isinstance(given, int | float) and given == given else "0"


def _lag_text(progress: Mapping[str, Any]) -> str:
    found = lag(progress)
    return "unknown" if found is None else f"{found:,}"


def lag(progress: Mapping[str, Any]) -> int | None:
    """Return how many records are in the topics and not done yet; None where a source does not say."""
    total = 0
    for source in progress.get("sources") or ():
        latest, end = _offsets(source.get("latestOffset")), _offsets(source.get("endOffset"))
        if latest is None or end is None:
            return None
        total += sum(max(last - end.get(partition, 0), 0) for partition, last in latest.items())
    return total


def _offsets(given: Any) -> dict[tuple[str, str], int] | None:
    """Offsets by partition, of the JSON in which sources have them: {topic: {partition: offset}}."""
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            return None
    if not isinstance(given, Mapping):
        return None
    found = {}
    for topic, partitions in given.items():
        if topic.startswith("#"):  # what a source keeps beside the offsets (spark/source/offsets.py)
            continue
        if not isinstance(partitions, Mapping):
            return None
        for partition, offset in partitions.items():
            if not isinstance(offset, int):
                return None
            found[(topic, str(partition))] = offset
    return found


class StatusLine:
    """A line that is shown over and over."""

    def __init__(self, stream: IO[str], clock: Clock | None = None) -> None:
        self._stream = stream
        self._clock = clock or RealClock()
        try:
            self._live = stream.isatty()
        except ValueError:  # it is closed
            self._live = False
        self._next = self._clock.monotonic()
        self._shown = ""

    def show(self, line: str) -> None:
        """Show how it goes now."""
        if line == self._shown:
            return
        if self._live:
            self._stream.write(f"\r\x1b[K{line}")
            self._stream.flush()
        elif self._clock.monotonic() >= self._next:
            self._next = self._clock.monotonic() + _LINE_SECONDS
            self._stream.write(f"{line}\n")
            self._stream.flush()
        self._shown = line

    def aside(self) -> None:
        """Take the line away, so that something else can be printed; it comes back with the next `show`."""
        if self._live and self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
        self._shown = ""
