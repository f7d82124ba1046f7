"""The types that keys and values can have.

A type knows three things: the name of its Spark type (`ddl`), how what Spark hands out becomes what the user's
functions get (`load`), and the way back (`dump`).

Y1  dump(load(x)) is x, whichever of Spark's two ways x came: rows are tuples from one, dicts from the other.
Y2  None is nobody's value: `load` and `dump` are never called with it, except by types that hold others.
Y3  dump refuses what is not of the type. Nothing is turned into something else in silence.
"""

import datetime
import decimal
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
        if not given.isascii():
            check_text(given)
        return given


def check_text(given: str) -> None:
    """TypeMismatch for half a surrogate pair: UTF-8 has no bytes for it."""
    try:
        given.encode()
    except UnicodeEncodeError:
        raise TypeMismatch(f"{given!r:.200} is not text: half a surrogate pair is in it") from None


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
        try:
            found = float(given) if given == given else math.nan  # of which Java writes one alone
            # Spark would keep half of the digits, and the next operator must see what Spark would have given it.
            return found if self.bits == 64 else _SHORT.unpack(_SHORT.pack(found))[0]
        except OverflowError:
            raise TypeMismatch(f"{given!r:.100} does not fit into {self.bits} bits") from None


_SHORT = struct.Struct("<f")


# Python's own context would round to 28 digits.
_EXACT = decimal.Context(prec=100)


def normal(given: decimal.Decimal) -> decimal.Decimal:
    """Return the same number without zeros at its end, whatever Python's context: what is equal looks alike."""
    return given.normalize(_EXACT) if given else decimal.Decimal(0)


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
        short = normal(given)
        exponent: Any = short.as_tuple().exponent
        return short.quantize(decimal.Decimal(1), context=_EXACT) if exponent > 0 else short

    plain: ClassVar[bool] = False

    def dump(self, given: Any) -> Any:
        """Hand it to Spark."""
        if isinstance(given, bool) or not isinstance(given, decimal.Decimal | int):
            raise mismatch(given, "a Decimal")
        with decimal.localcontext(decimal.Context(prec=self.precision, traps=[decimal.InvalidOperation])):
            try:
                found = decimal.Decimal(given).quantize(decimal.Decimal(1).scaleb(-self.scale))
            except decimal.InvalidOperation:
                raise TypeMismatch(f"{given!s:.100} does not fit into {self.ddl()}") from None
        if found.is_nan():
            raise TypeMismatch(f"{given} is not a number")
        return found if found else abs(found)  # Spark has one zero


@dataclass(frozen=True, slots=True)
class Instant(Type):
    """datetime.datetime, always with a time zone: one without would be another moment on every machine."""

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
        if given.tzinfo is datetime.UTC:
            return given
        if given.tzinfo is None:
            raise TypeMismatch(
                f"{given!r} has no time zone, so it does not say which moment it is",
                hint="make it by datetime.now(UTC), or add one: given.replace(tzinfo=UTC)",
            )
        try:
            return given.astimezone(datetime.UTC)
        except OverflowError:
            raise TypeMismatch(f"{given} is beyond the years 1 to 9999 of UTC") from None


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
    """list, or a set or a tuple of any length: `made` makes one. A set is kept in order and without doubles."""

    of: Type
    made: Callable[[list[Any]], Any] = list
    plain: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"array<{self.of}>"

    def ddl(self) -> str:
        """Say what Spark calls it."""
        return f"array<{self.of.ddl()}>"

    def load(self, given: Any) -> Any:
        """Take it from Spark."""
        found = list(given) if self.of.plain else [self.of.load(each) for each in given]
        return found if self.made is list else self.made(found)

    def dump(self, given: Any) -> Any:
        """Hand it to Spark."""
        if not isinstance(given, list | tuple | set | frozenset):
            raise mismatch(given, "a list")
        found = [self.of.dump(each) for each in given]
        return sorted_set(found) if self.is_set else found

    @property
    def is_set(self) -> bool:
        """Whether the order of its elements means nothing."""
        return self.made in (set, frozenset)


def sorted_set(given: list[Any]) -> list[Any]:
    """Return plain values in an order of their own, equal ones once."""
    found: list[Any] = []
    for each in sorted(given, key=_rank):
        if not found or found[-1] != each:
            found.append(each)
    return found


def _rank(given: Any) -> Any:
    """What plain values of one type can be ordered by, None and what is made of others among them."""
    if isinstance(given, list | tuple):
        return (1, *map(_rank, given))
    if isinstance(given, Mapping):
        return (1, *sorted((_rank(key), _rank(value)) for key, value in given.items()))
    return (0, 0) if given is None else (1, given)


@dataclass(frozen=True, slots=True)
class Dictionary(Type):
    """dict. With `is_sorted`, as keys have it, its entries stand in one order: so those that are equal look alike."""

    key: Type
    value: Type
    is_sorted: bool = field(default=False, compare=False)
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
        return self.ordered({self.key.dump(key): self.value.dump(value) for key, value in given.items()})

    def ordered(self, given: dict[Any, Any]) -> dict[Any, Any]:
        """Return plain entries in the order in which they are to stand."""
        return dict(sorted(given.items(), key=lambda entry: _rank(entry[0]))) if self.is_sorted else given
