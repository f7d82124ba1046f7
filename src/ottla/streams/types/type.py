"""The types that keys and values can have.

A type knows three things: the name of its Spark type (`ddl`), how what Spark hands out becomes what the user's
functions get (`load`), and the way back (`dump`).

Y1  dump(load(x)) is x, whichever of Spark's two ways x came: rows are tuples from one, dicts from the other.
Y2  None is nobody's value: `load` and `dump` are never called with it, except by types that hold others.
Y3  dump refuses what is not of the type. Nothing is turned into something else in silence.
"""

import datetime
import decimal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ottla.streams.errors import TypeMismatch


@dataclass(frozen=True, slots=True)
class Type:
    """What all types have in common."""

    # Whether load and dump leave what they get as it is (but for the check).
    plain: ClassVar[bool] = True
    word: ClassVar[str] = ""

    def ddl(self) -> str:
        """Return what Spark calls it."""
        return self.word

    def load(self, given: Any) -> Any:
        """Return what a user's function sees."""
        return given

    def dump(self, given: Any) -> Any:
        """Return what Spark takes; TypeMismatch for what is not of this type."""
        raise NotImplementedError

    def __str__(self) -> str:
        """Return what users call it."""
        return self.ddl()


def mismatch(given: Any, wanted: str) -> TypeMismatch:
    """Return the error for what is not of the type that is wanted."""
    return TypeMismatch(f"{given!r:.200} is {_kind(given)}, not {wanted}")


def _kind(given: Any) -> str:
    return "None" if given is None else f"a {type(given).__name__}"


@dataclass(frozen=True, slots=True)
class Text(Type):
    """str."""

    word: ClassVar[str] = "string"

    def dump(self, given: Any) -> Any:
        """Hand it to Spark."""
        if not isinstance(given, str):
            raise mismatch(given, "a str")
        return given


@dataclass(frozen=True, slots=True)
class Bytes(Type):
    """bytes."""

    plain: ClassVar[bool] = False
    word: ClassVar[str] = "binary"

    def load(self, given: Any) -> Any:
        """Take it from Spark."""
        return bytes(given)  # one of Spark's ways gives a bytearray

    def dump(self, given: Any) -> Any:
        """Hand it to Spark."""
        if not isinstance(given, bytes | bytearray | memoryview):
            raise mismatch(given, "bytes")
        return bytes(given)


@dataclass(frozen=True, slots=True)
class Boolean(Type):
    """bool."""

    word: ClassVar[str] = "boolean"

    def dump(self, given: Any) -> Any:
        """Hand it to Spark."""
        if not isinstance(given, bool):
            raise mismatch(given, "a bool")
        return given


_INTEGERS = {8: "tinyint", 16: "smallint", 32: "int", 64: "bigint"}


@dataclass(frozen=True, slots=True)
class Integer(Type):
    """int, within so many bits."""

    bits: int = 64

    def ddl(self) -> str:
        """Say what Spark calls it."""
        return _INTEGERS[self.bits]

    def dump(self, given: Any) -> Any:
        """Hand it to Spark."""
        if not isinstance(given, int) or isinstance(given, bool):
            raise mismatch(given, "an int")
        if not -(1 << self.bits - 1) <= given < 1 << self.bits - 1:
            raise TypeMismatch(f"{given} does not fit into {self.bits} bits")
        return given


@dataclass(frozen=True, slots=True)
class Real(Type):
    """float."""

    bits: int = 64

    def ddl(self) -> str:
        """Say what Spark calls it."""
        return "double" if self.bits == 64 else "float"

    def dump(self, given: Any) -> Any:
        """Hand it to Spark."""
        if not isinstance(given, float | int) or isinstance(given, bool):
            raise mismatch(given, "a float")
        return float(given)


# Python's own context would round to 28 digits.
_EXACT = decimal.Context(prec=100)


@dataclass(frozen=True, slots=True)
class Exact(Type):
    """decimal.Decimal."""

    precision: int = 38
    scale: int = 18

    def ddl(self) -> str:
        """Say what Spark calls it."""
        return f"decimal({self.precision},{self.scale})"

    def load(self, given: Any) -> Any:
        """Take it from Spark."""
        # Spark pads to its scale: 1.50 comes back as 1.500000000000000000, which is equal but reads badly.
        short = given.normalize(_EXACT)
        return short.quantize(decimal.Decimal(1), context=_EXACT) if short.as_tuple().exponent > 0 else short

    plain: ClassVar[bool] = False

    def dump(self, given: Any) -> Any:
        """Hand it to Spark."""
        if isinstance(given, bool) or not isinstance(given, decimal.Decimal | int):
            raise mismatch(given, "a Decimal")
        with decimal.localcontext(decimal.Context(prec=self.precision, traps=[decimal.InvalidOperation])):
            try:
                return decimal.Decimal(given).quantize(decimal.Decimal(1).scaleb(-self.scale))
            except decimal.InvalidOperation:
                raise TypeMismatch(f"{given} does not fit into {self.ddl()}") from None


@dataclass(frozen=True, slots=True)
class Instant(Type):
    """datetime.datetime, always with a time zone: what has none is taken to be UTC."""

    plain: ClassVar[bool] = False
    word: ClassVar[str] = "timestamp"

    def load(self, given: Any) -> Any:
        """Take it from Spark."""
        # One of Spark's ways gives naive datetimes in the process's own zone, and astimezone takes them as that.
        return given.astimezone(datetime.UTC)

    def dump(self, given: Any) -> Any:
        """Hand it to Spark."""
        if not isinstance(given, datetime.datetime):
            raise mismatch(given, "a datetime")
        return given if given.tzinfo else given.replace(tzinfo=datetime.UTC)


@dataclass(frozen=True, slots=True)
class Day(Type):
    """datetime.date."""

    word: ClassVar[str] = "date"

    def dump(self, given: Any) -> Any:
        """Hand it to Spark."""
        if not isinstance(given, datetime.date) or isinstance(given, datetime.datetime):
            raise mismatch(given, "a date")
        return given


@dataclass(frozen=True, slots=True)
class Nullable(Type):
    """None, or a value of another type. The type of a key or a value as a whole never is: any record may have a
    null.
    """

    of: Type
    plain: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"{self.of} or none"

    def ddl(self) -> str:
        """Say what Spark calls it."""
        return self.of.ddl()

    def load(self, given: Any) -> Any:
        """Take it from Spark."""
        return None if given is None else self.of.load(given)

    def dump(self, given: Any) -> Any:
        """Hand it to Spark."""
        return None if given is None else self.of.dump(given)


@dataclass(frozen=True, slots=True)
class Array(Type):
    """list."""

    of: Type
    plain: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"array<{self.of}>"

    def ddl(self) -> str:
        """Say what Spark calls it."""
        return f"array<{self.of.ddl()}>"

    def load(self, given: Any) -> Any:
        """Take it from Spark."""
        return list(given) if self.of.plain else [self.of.load(each) for each in given]

    def dump(self, given: Any) -> Any:
        """Hand it to Spark."""
        if not isinstance(given, list | tuple | set | frozenset):
            raise mismatch(given, "a list")
        return [self.of.dump(each) for each in given]


@dataclass(frozen=True, slots=True)
class Dictionary(Type):
    """dict."""

    key: Type
    value: Type
    plain: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"map<{self.key},{self.value}>"

    def ddl(self) -> str:
        """Say what Spark calls it."""
        return f"map<{self.key.ddl()},{self.value.ddl()}>"

    def load(self, given: Any) -> Any:
        """Take it from Spark."""
        pairs = given.items() if isinstance(given, Mapping) else given
        return {self.key.load(key): self.value.load(value) for key, value in pairs}

    def dump(self, given: Any) -> Any:
        """Hand it to Spark."""
        if not isinstance(given, Mapping):
            raise mismatch(given, "a dict")
        return {self.key.dump(key): self.value.dump(value) for key, value in given.items()}
