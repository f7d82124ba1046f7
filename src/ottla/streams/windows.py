"""Windows and other spans of event time.

A span is a timedelta, a string such as "5 minutes", or a number of milliseconds. The start of a window is included.
The end of a tumbling or hopping window is excluded; the end of a sliding or session window is included.
"""

import re
from dataclasses import dataclass, field
from datetime import timedelta

from ottla.streams.errors import TopologyError

Span = timedelta | int | str
"""A span of time: a timedelta, a string such as "5 minutes", or a number of milliseconds."""

_UNITS = {"ms": 1, "millisecond": 1, "s": 1000, "second": 1000, "min": 60_000, "minute": 60_000, "m": 60_000}
_UNITS |= {"h": 3_600_000, "hour": 3_600_000, "d": 86_400_000, "day": 86_400_000}


def milliseconds(span: Span, what: str = "span") -> int:
    """Return a span of time in milliseconds; TopologyError for one that is none."""
    if isinstance(span, timedelta):
        return round(span / timedelta(milliseconds=1))
    if isinstance(span, bool):
        raise TopologyError(f"{what}: {span!r} is no span of time")
    if isinstance(span, int):
        return span
    if isinstance(span, str) and (found := re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]+)\s*", span)):
        word = found[2].lower()
        unit = _UNITS.get(word) or _UNITS.get(word.removesuffix("s"))
        if unit:
            return round(float(found[1]) * unit)
    raise TopologyError(
        f"{what}: {span!r} is no span of time",
        hint="give a timedelta, milliseconds, or a text such as '5 minutes'",
    )


def _positive(span: Span, what: str) -> int:
    ms = milliseconds(span, what)
    if ms <= 0:
        raise TopologyError(f"{what}: {span!r} must be longer than nothing")
    return ms


def _at_least_nothing(span: Span, what: str) -> int:
    ms = milliseconds(span, what)
    if ms < 0:
        raise TopologyError(f"{what}: {span!r} must not be negative")
    return ms


@dataclass(frozen=True, slots=True)
class TumblingWindow:
    """Windows of one size that do not overlap: [0, size), [size, 2·size) and so on."""

    size: Span
    grace: Span = field(default=0, kw_only=True)
    size_ms: int = field(init=False)
    grace_ms: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size_ms", _positive(self.size, "size"))
        object.__setattr__(self, "grace_ms", _at_least_nothing(self.grace, "grace"))

    @property
    def advance_ms(self) -> int:
        """The time between the starts of two windows, in milliseconds."""
        return self.size_ms


@dataclass(frozen=True, slots=True)
class HoppingWindow:
    """Windows of one size, one of which starts every `advance`. A record is in all windows that overlap its time."""

    size: Span
    advance: Span
    grace: Span = field(default=0, kw_only=True)
    size_ms: int = field(init=False)
    advance_ms: int = field(init=False)
    grace_ms: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size_ms", _positive(self.size, "size"))
        object.__setattr__(self, "advance_ms", _positive(self.advance, "advance"))
        object.__setattr__(self, "grace_ms", _at_least_nothing(self.grace, "grace"))
        if self.advance_ms > self.size_ms:
            raise TopologyError(
                f"advance: {self.advance!r} is longer than the window, so records would be lost"
            )


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """A window for each set of records that are at most `difference` apart. Both ends are included."""

    difference: Span
    grace: Span = field(default=0, kw_only=True)
    difference_ms: int = field(init=False)
    grace_ms: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "difference_ms", _at_least_nothing(self.difference, "difference"))
        object.__setattr__(self, "grace_ms", _at_least_nothing(self.grace, "grace"))


@dataclass(frozen=True, slots=True)
class SessionWindow:
    """A window lasts while the next record is at most `gap` later. It goes from its first to its last record."""

    gap: Span
    grace: Span = field(default=0, kw_only=True)
    gap_ms: int = field(init=False)
    grace_ms: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "gap_ms", _positive(self.gap, "gap"))
        object.__setattr__(self, "grace_ms", _at_least_nothing(self.grace, "grace"))


Window = TumblingWindow | HoppingWindow | SlidingWindow | SessionWindow


@dataclass(frozen=True, slots=True)
class JoinWindow:
    """Records are joined if the right one is at most `before` earlier or `after` later than the left one."""

    before: Span
    after: Span
    grace: Span = field(default=0, kw_only=True)
    before_ms: int = field(init=False)
    after_ms: int = field(init=False)
    grace_ms: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "before_ms", milliseconds(self.before, "before"))
        object.__setattr__(self, "after_ms", milliseconds(self.after, "after"))
        object.__setattr__(self, "grace_ms", _at_least_nothing(self.grace, "grace"))
        if self.before_ms + self.after_ms < 0:
            raise TopologyError("the window of a join ends before it begins")


def within(difference: Span, *, grace: Span = 0) -> JoinWindow:
    """Return a JoinWindow for records that are at most `difference` apart in either direction."""
    return JoinWindow(difference, difference, grace=grace)


@dataclass(frozen=True, slots=True)
class WindowClose:
    """Hold changes back until a window is final: stream time is past its end and its grace."""


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """Hold the changes of a key back for `wait` of event time, and then forward the last one.

    `records_max` limits how many keys are held. Beyond it the oldest is forwarded early (`when_full="emit"`), or the
    query fails (`when_full="fail"`).
    """

    wait: Span
    records_max: int | None = None
    when_full: str = "emit"
    wait_ms: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "wait_ms", _at_least_nothing(self.wait, "wait"))
        if self.when_full not in ("emit", "fail"):
            raise TopologyError(f"when_full: {self.when_full!r} is neither 'emit' nor 'fail'")
