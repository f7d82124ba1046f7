"""A setting as a value: its name, type, default, rule, importance, and what it means in a sentence.

Laws
1  `parse` turns text into a value of the declared type as Kafka does (surrounding blanks fall away, numbers have
   their type's width), and checks the rule. It raises SettingError and nothing else.
2  `text` is its inverse in Kafka's spelling, so DescribeConfigs prints what Kafka prints.
3  Nothing here reads a file, a clock or the environment.
"""

import enum
import math
import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeAlias

from ottla.metadata.settings.error import InvalidValue
from ottla.metadata.settings.rule import ANY, Rule

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None


class Type(enum.IntEnum):
    """Kafka's config types; the numbers are those of DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Importance(enum.Enum):
    """How much most users should care."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class Update(enum.Enum):
    """Whether a broker setting may change while the broker runs, and for whom."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Password(str):
    """A secret: equal to its text, but never printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "[hidden]"

    __str__ = __repr__

    def reveal(self) -> str:
        """The secret itself."""
        return "".join(self)


class Required(enum.Enum):
    """Stands where a default would, for settings that must be given."""

    REQUIRED = "(required)"


BOOLEAN, STRING, INT, SHORT, LONG = Type.BOOLEAN, Type.STRING, Type.INT, Type.SHORT, Type.LONG
DOUBLE, LIST, CLASS, PASSWORD = Type.DOUBLE, Type.LIST, Type.CLASS, Type.PASSWORD
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
REQUIRED = Required.REQUIRED
LONG_MAX = 2**63 - 1
INT_MAX = 2**31 - 1
DOUBLE_MAX = 1.7976931348623157e308

_WIDTH_BITS = {Type.SHORT: 16, Type.INT: 32, Type.LONG: 64}
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_DOUBLE = re.compile(r"[+-]?(NaN|Infinity|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?)", re.ASCII)
_ALLOWED = {
    Type.BOOLEAN: "true or false",
    Type.SHORT: "a 16-bit integer",
    Type.INT: "a 32-bit integer",
    Type.LONG: "a 64-bit integer",
    Type.DOUBLE: "a number",
    Type.LIST: "a comma-separated list",
    Type.CLASS: "a class name",
    Type.STRING: "text",
    Type.PASSWORD: "a secret",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `internal` ones, and `later` ones, which came after the release of Kafka whose answers we give, are
    known but shown only where somebody set them.
    """

    name: str
    type: Type
    default: Value | Required
    importance: Importance
    valid: Rule
    doc: str
    update: Update = field(default=Update.READ_ONLY, kw_only=True)
    internal: bool = field(default=False, kw_only=True)
    later: bool = field(default=False, kw_only=True)

    @property
    def hidden(self) -> bool:
        """True when it is shown only where somebody set it."""
        return self.internal or self.later

    @property
    def sensitive(self) -> bool:
        """True when the value must never be shown."""
        return self.type is Type.PASSWORD

    @property
    def required(self) -> bool:
        """True when there is no default."""
        return isinstance(self.default, Required)

    @property
    def default_value(self) -> Value:
        """The default, or None when there is none."""
        return None if isinstance(self.default, Required) else self.default

    @property
    def allowed(self) -> str:
        """What a person may write here."""
        rule = str(self.valid)
        return f"{_ALLOWED[self.type]}, {rule}" if rule else _ALLOWED[self.type]

    def parse(self, text: str) -> Value:
        """The typed value of `text`, checked; SettingError says what is wrong with it."""
        value = self._parse(text.strip())
        self.valid.check(self.name, value)
        return value

    def text(self, value: Value) -> str | None:
        """`value` as Kafka spells it; None stays None."""
        if value is None:
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, tuple):
            return ",".join(value)
        if isinstance(value, float):
            return double_text(value)
        return value.reveal() if isinstance(value, Password) else str(value)

    def _parse(self, text: str) -> Value:
        kind = self.type
        if kind is Type.BOOLEAN:
            lowered = text.lower()
            if lowered not in {"true", "false"}:
                raise InvalidValue(self.name, text, "Expected value to be either true or false", self.allowed)
            return lowered == "true"
        if kind in _WIDTH_BITS:
            bound = 1 << (_WIDTH_BITS[kind] - 1)
            # A cap on the length keeps a hostile client from making us parse a million digits.
            if not _INTEGER.fullmatch(text) or len(text) > 64 or not -bound <= int(text) < bound:
                raise InvalidValue(self.name, text, f"Not a number of type {kind.name}", self.allowed)
            return int(text)
        if kind is Type.DOUBLE:
            if not _DOUBLE.fullmatch(text):
                raise InvalidValue(self.name, text, f"Not a number of type {kind.name}", self.allowed)
            return float(text.rstrip("fFdD") if text[-1] in "fFdD" else text)
        if kind is Type.LIST:
            return tuple(re.split(r"\s*,\s*", text)) if text else ()
        return Password(text) if kind is Type.PASSWORD else text


def double_text(value: float) -> str:
    """A double as Java prints it: plain between 0.001 and 10 million, else with an E."""
    if not math.isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(value)]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    fraction = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{fraction}E{exponent + len(digits) - 1}"


def by_name(*groups: tuple[Setting, ...]) -> dict[str, Setting]:
    """An index of settings by name; a name may stand once only."""
    index = {setting.name: setting for group in groups for setting in group}
    assert len(index) == sum(map(len, groups)), "a setting is defined twice"
    return index


__all__ = [
    "ANY", "BOOLEAN", "CLASS", "DOUBLE", "DOUBLE_MAX", "HIGH", "INT", "INT_MAX", "LIST", "LONG", "LONG_MAX", "LOW",
    "MEDIUM", "PASSWORD", "REQUIRED", "SHORT", "STRING", "Importance", "Password", "Required", "Setting", "Type",
    "Update", "Value", "by_name", "double_text",
]
