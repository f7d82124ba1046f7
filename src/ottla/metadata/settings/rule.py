"""Rules that a parsed value must keep, beyond its type.

A rule is a small frozen value: calling `check` raises InvalidValue, and `str()` says what is allowed in the
notation that Kafka's own reference uses, so both can be compared with it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ottla.metadata.settings.error import ConflictingSettings, InvalidValue

if TYPE_CHECKING:
    from ottla.metadata.settings.definition import Value

_REPLICA = re.compile(r"([0-9]+:[0-9]+)?")
_HOST = r"(?:\[[0-9a-zA-Z.:%]+\]|[^\s:@,/\[\]]+)"
_VOTER = re.compile(rf"[+-]?\d+@{_HOST}:\d+")
_DURATION = re.compile(r"P(?=.)(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?")
_SERVER = re.compile(rf"(?:[a-zA-Z_]+://)?{_HOST}:\d+")


class Rule(Protocol):
    """Anything that can refuse a value and say what it would take."""

    def check(self, name: str, value: Value) -> None:
        """Raise InvalidValue when `value` may not be the value of the setting `name`."""
        ...


@dataclass(frozen=True, slots=True)
class Anything:
    """No rule beyond the type."""

    def check(self, name: str, value: Value) -> None:
        """Take every value."""

    def __str__(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class Range:
    """A number between two bounds, both inclusive; no upper bound when `high` is None."""

    low: float
    high: float | None = None

    def check(self, name: str, value: Value) -> None:
        """Refuse null and what lies outside."""
        if value is None:
            raise InvalidValue(name, "null", "Value must be non-null", str(self))
        assert isinstance(value, int | float)
        if value < self.low:
            raise InvalidValue(name, value, f"Value must be at least {self.low}", str(self))
        if self.high is not None and value > self.high:
            raise InvalidValue(name, value, f"Value must be no more than {self.high}", str(self))

    def __str__(self) -> str:
        return f"[{self.low},...]" if self.high is None else f"[{self.low},...,{self.high}]"


@dataclass(frozen=True, slots=True)
class GzipLevel:
    """1 to 9, or -1 for the codec's own default."""

    def check(self, name: str, value: Value) -> None:
        """Refuse the levels that zlib does not have."""
        assert isinstance(value, int)
        if value != -1 and not 1 <= value <= 9:
            raise InvalidValue(name, value, "Value must be between 1 and 9 or equal to -1", str(self))

    def __str__(self) -> str:
        return "[1,...,9] or -1"


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few words."""

    words: tuple[str, ...]
    ignore_case: bool = False

    def check(self, name: str, value: Value) -> None:
        """Refuse every other word."""
        text = str(value)
        words = tuple(word.lower() for word in self.words) if self.ignore_case else self.words
        if (text.lower() if self.ignore_case else text) not in words:
            manner = " (case insensitive)" if self.ignore_case else ""
            raise InvalidValue(name, value, f"String must be one of{manner}: {', '.join(self.words)}", str(self))

    def __str__(self) -> str:
        return ("(case insensitive) " if self.ignore_case else "") + f"[{', '.join(self.words)}]"


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list without duplicates or empty entries, of given words if there are any."""

    words: tuple[str, ...] = ()
    empty: bool = True

    def check(self, name: str, value: Value) -> None:
        """Refuse duplicates, empty entries, strangers and, unless allowed, the empty list."""
        if value is None:
            return
        assert isinstance(value, tuple)
        if not value and not self.empty:
            allowed = str(self) or "any non-empty value"
            raise self._refused(name, f"must not be empty. Valid values include: {allowed}")
        if len(set(value)) != len(value):
            raise self._refused(name, "values must not be duplicated.")
        for entry in value:
            if not entry:
                raise self._refused(name, "values must not be empty.")
            if self.words:
                OneOf(self.words).check(name, entry)

    def _refused(self, name: str, reason: str) -> ConflictingSettings:
        return ConflictingSettings(f"Configuration '{name}' {reason}", name=name, allowed=str(self))

    def __str__(self) -> str:
        return f"[{', '.join(self.words)}]" if self.words else ""


@dataclass(frozen=True, slots=True)
class NonEmpty:
    """Null, or a text with something in it."""

    def check(self, name: str, value: Value) -> None:
        """Refuse the empty text."""
        if value == "":
            raise InvalidValue(name, value, "String must be non-empty", str(self))

    def __str__(self) -> str:
        return "non-empty string"


@dataclass(frozen=True, slots=True)
class NonNull:
    """Any text, even empty, but not null."""

    def check(self, name: str, value: Value) -> None:
        """Refuse null."""
        if value is None:
            raise InvalidValue(name, "null", "entry must be non null", str(self))

    def __str__(self) -> str:
        return "non-null string"


@dataclass(frozen=True, slots=True)
class ThrottledReplicas:
    """`*`, or a list of partition:broker."""

    def check(self, name: str, value: Value) -> None:
        """Refuse any other shape."""
        assert isinstance(value, tuple)
        if "".join(value) != "*" and not all(_REPLICA.fullmatch(entry) for entry in value):
            form = "must be the literal '*' or a list of replicas in the following format: "
            raise InvalidValue(name, list_text(value), f"{name} {form}{self}", str(self))

    def __str__(self) -> str:
        return "[partitionId]:[brokerId],[partitionId]:[brokerId],..."


@dataclass(frozen=True, slots=True)
class Voters:
    """A list of id@host:port."""

    def check(self, name: str, value: Value) -> None:
        """Refuse an entry of any other shape."""
        _check_each(name, value, _VOTER, "{id}@{host}:{port}")

    def __str__(self) -> str:
        return "non-empty list"


@dataclass(frozen=True, slots=True)
class Servers:
    """A list of host:port."""

    def check(self, name: str, value: Value) -> None:
        """Refuse an entry of any other shape."""
        _check_each(name, value, _SERVER, "{host}:{port}")

    def __str__(self) -> str:
        return "non-empty list"


@dataclass(frozen=True, slots=True)
class OffsetReset:
    """Where a share group begins: earliest, latest, or by_duration with an ISO 8601 duration."""

    def check(self, name: str, value: Value) -> None:
        """Refuse any other word, and a duration that is negative or not one."""
        text = str(value)
        if text in {"earliest", "latest"}:
            return
        kind, _, duration = text.partition(":")
        if kind != "by_duration" or not _DURATION.fullmatch(duration):
            raise InvalidValue(name, value, f"Invalid value `{text}` for configuration {name}. {self}", str(self))

    def __str__(self) -> str:
        return "The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."


def list_text(value: tuple[str, ...]) -> str:
    """A list as Kafka prints it inside a message."""
    return f"[{', '.join(value)}]"


def at_least(low: int) -> Range:
    """`low` or more."""
    return Range(low)


def between(low: float, high: float) -> Range:
    """`low` to `high`, both included."""
    return Range(low, high)


def one_of(*words: str) -> OneOf:
    """Exactly one of these words."""
    return OneOf(words)


def list_of(*words: str) -> ListOf:
    """Any number of these words, each at most once."""
    return ListOf(words)


def _check_each(name: str, value: Value, form: re.Pattern[str], shape: str) -> None:
    assert isinstance(value, tuple)
    for entry in value:
        if not form.fullmatch(entry):
            raise InvalidValue(name, entry, f"each entry must have the form {shape}", f"a list of {shape}")


ANY = Anything()
