"""Windows and other spans of time, as values.

All of them are in milliseconds of event time. Where a span is given it may be a timedelta, a number of milliseconds,
or a text such as "5 minutes". Window starts are included; the end of a tumbling or hopping window is not, the ends of
a sliding and of a session window are.
"""

import re
from dataclasses import dataclass, field
from datetime import timedelta

from ottla.streams.errors import TopologyError

Span = timedelta | int | str

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
class Tumbling:
    """Windows of one size, side by side: [0, size), [size, 2·size) and so on."""

    size: Span
    grace: Span = field(default=0, kw_only=True)
    size_ms: int = field(init=False)
    grace_ms: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size_ms", _positive(self.size, "size"))
        object.__setattr__(self, "grace_ms", _at_least_nothing(self.grace, "grace"))

    @property
    def advance_ms(self) -> int:
        """How far apart the starts of windows are."""
        return self.size_ms


@dataclass(frozen=True, slots=True)
class Hopping:
    """Windows of one size that begin every `advance`: a record is in as many of them as overlap there."""

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
class Sliding:
    """A window for each distinct set of records no further apart than `difference`; both ends are included."""

    difference: Span
    grace: Span = field(default=0, kw_only=True)
    difference_ms: int = field(init=False)
    grace_ms: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "difference_ms", _at_least_nothing(self.difference, "difference"))
        object.__setattr__(self, "grace_ms", _at_least_nothing(self.grace, "grace"))


@dataclass(frozen=True, slots=True)
class Session:
    """Windows that grow while records come no further apart than `gap`; from the first record to the last, both
    included.
    """

    gap: Span
    grace: Span = field(default=0, kw_only=True)
    gap_ms: int = field(init=False)
    grace_ms: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "gap_ms", _positive(self.gap, "gap"))
        object.__setattr__(self, "grace_ms", _at_least_nothing(self.grace, "grace"))


Window = Tumbling | Hopping | Sliding | Session


@dataclass(frozen=True, slots=True)
class JoinWindow:
    """How far apart records may be to be joined: right between `before` earlier and `after` later than left, ends
    included.
    """

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
    """Return the join window of records at most `difference` apart, either way."""
    return JoinWindow(difference, difference, grace=grace)


@dataclass(frozen=True, slots=True)
class WindowClose:
    """Suppress until a window can change no more: stream time has passed its end and its grace."""


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """Suppress until `wait` of event time has passed since the first change held back for a key; then the last one
    leaves.

    With `records_max` at most so many keys are held; `when_full` says whether the oldest leaves early ("emit") or the
    query fails ("fail").
    """

    wait: Span
    records_max: int | None = None
    when_full: str = "emit"
    wait_ms: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "wait_ms", _at_least_nothing(self.wait, "wait"))
        if self.when_full not in ("emit", "fail"):
            raise TopologyError(f"when_full: {self.when_full!r} is neither 'emit' nor 'fail'")
