"""Types made of fields: dataclasses, rows of a DDL text, pairs, keys with a window; and those that are text inside."""

import dataclasses
import datetime
import decimal
import enum
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from ottla.streams.errors import TypeMismatch
from ottla.streams.types.type import Nullable, Type, check_text, mismatch


class Row(dict[str, Any]):
    """What a value of a DDL text or a Spark schema is: a dict whose entries are attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no field {name}; there are {', '.join(self)}") from None


class Window(NamedTuple):
    """A span of event time in milliseconds."""

    start: int
    end: int


class Windowed(NamedTuple):
    """A key in a window."""

    key: Any
    window: Window


@dataclass(frozen=True, slots=True)
class Field:
    """A field: its name, its type, and what it is when a record does not have it (`required` if nothing).

    That is the same for all records, or what `factory` returns, which is asked anew for each.
    """

    name: str
    type: Type
    default: Any = dataclasses.field(default=None, compare=False)
    required: bool = dataclasses.field(default=True, compare=False)
    factory: Callable[[], Any] | None = dataclasses.field(default=None, compare=False)

    def missing(self) -> Any:
        """Return what it is in a record that does not have it."""
        return self.default if self.factory is None else self.factory()


@dataclass(frozen=True, slots=True)
class Struct(Type):
    """A dataclass, a NamedTuple or a Row."""

    fields: tuple[Field, ...]
    maker: Any = dataclasses.field(default=Row, compare=False)
    plain: ClassVar[bool] = False

    def ddl(self) -> str:
        """Say what Spark calls it."""
        inside = ",".join(f"`{each.name}`:{each.type.ddl()}" for each in self.fields)
        return f"struct<{inside}>"

    def __str__(self) -> str:
        return self.ddl() if self.maker is Row else str(self.maker.__name__)

    def field(self, name: str) -> Field | None:
        """Return the field of that name."""
        return next((each for each in self.fields if each.name == name), None)

    def load(self, given: Any) -> Any:
        """Take it from Spark."""
        # Spark's Row is a tuple, and comes by position; Arrow gives a dict.
        parts = [given[each.name] for each in self.fields] if isinstance(given, dict) else given
        values = [
            part if each.type.plain else _load(each, part)
            for each, part in zip(self.fields, parts, strict=True)
        ]
        if self.maker is Row:
            return Row(zip([each.name for each in self.fields], values, strict=True))
        return self.maker(*values)

    def dump(self, given: Any) -> Any:
        """Hand it to Spark."""
        if self.maker is Row:
            if not isinstance(given, Mapping):
                raise mismatch(given, "a dict")
            strange = given.keys() - {each.name for each in self.fields}
            if strange:
                raise TypeMismatch(f"there is no field {sorted(strange)[0]} in {self.ddl()}")
            return tuple(_dump(each, given.get(each.name)) for each in self.fields)
        if not isinstance(given, self.maker) and type(given).__qualname__ != self.maker.__qualname__:
            raise mismatch(given, f"a {self.maker.__name__}")
        return tuple(_dump(each, getattr(given, each.name)) for each in self.fields)


def _load(field: Field, part: Any) -> Any:
    return None if part is None else field.type.load(part)


def _dump(field: Field, part: Any) -> Any:
    try:
        return field.type.dump(part)
    except TypeMismatch as error:
        raise TypeMismatch(f"field {field.name}: {error}") from None


@dataclass(frozen=True, slots=True)
class Pair(Type):
    """tuple, of so many things."""

    parts: tuple[Type, ...]
    plain: ClassVar[bool] = False

    def ddl(self) -> str:
        """Say what Spark calls it."""
        inside = ",".join(f"`_{n}`:{each.ddl()}" for n, each in enumerate(self.parts, 1))
        return f"struct<{inside}>"

    def load(self, given: Any) -> Any:
        """Take it from Spark."""
        parts = given.values() if isinstance(given, dict) else given
        return tuple(
            None if part is None else each.load(part) for each, part in zip(self.parts, parts, strict=True)
        )

    def dump(self, given: Any) -> Any:
        """Hand it to Spark."""
        if not isinstance(given, tuple | list) or len(given) != len(self.parts):
            raise mismatch(given, f"a tuple of {len(self.parts)}")
        return tuple(each.dump(part) for each, part in zip(self.parts, given, strict=True))


@dataclass(frozen=True, slots=True)
class WindowedKey(Type):
    """The key of a windowed table: a key, and the window's start and end in milliseconds."""

    of: Type
    session: bool = False  # whose bytes are different in a topic
    size_ms: int | None = None  # of windows that all have one size: their end is not in a topic's bytes
    plain: ClassVar[bool] = False

    def ddl(self) -> str:
        """Say what Spark calls it."""
        return f"struct<`key`:{self.of.ddl()},`start`:bigint,`end`:bigint>"

    def __str__(self) -> str:
        return f"windowed {self.of}"

    def load(self, given: Any) -> Any:
        """Take it from Spark."""
        key, start, end = (given["key"], given["start"], given["end"]) if isinstance(given, dict) else given
        return Windowed(None if key is None else self.of.load(key), Window(start, end))

    def dump(self, given: Any) -> Any:
        """Hand it to Spark."""
        if not isinstance(given, tuple) or len(given) != 2:
            raise mismatch(given, "a Windowed key")
        key, (start, end) = given
        return (self.of.dump(key), start, end)


@dataclass(frozen=True, slots=True)
class Choice(Type):
    """An Enum: kept as the value of the member where all values are text, else as its name."""

    of: Any
    plain: ClassVar[bool] = False
    word: ClassVar[str] = "string"

    def __str__(self) -> str:
        return str(self.of.__name__)

    @property
    def by_value(self) -> bool:
        """Whether members are kept as their values."""
        return all(isinstance(each.value, str) for each in self.of)

    def texts(self) -> tuple[str, ...]:
        """Return what may stand for a member."""
        return tuple(each.value if self.by_value else each.name for each in self.of)

    def load(self, given: Any) -> Any:
        """Take it from Spark."""
        return self.of(given) if self.by_value else self.of[given]

    def dump(self, given: Any) -> Any:
        """Hand it to Spark."""
        if isinstance(given, enum.Enum) and type(given).__qualname__ == self.of.__qualname__:
            return given.value if self.by_value else given.name
        raise mismatch(given, f"a {self.of.__name__}")


@dataclass(frozen=True, slots=True)
class Anything(Type):
    """Whatever JSON can say: dicts, lists, text, numbers, booleans, None. Kept as JSON text with sorted keys, None as
    null.

    With `by_value`, as keys have it, a number is written by what it is worth, so that 1 and 1.0 are one key.
    """

    by_value: bool = dataclasses.field(default=False, compare=False)
    plain: ClassVar[bool] = False
    word: ClassVar[str] = "string"

    def __str__(self) -> str:
        return "anything"

    def load(self, given: Any) -> Any:
        """Take it from Spark."""
        return None if given is None else json.loads(given)

    def dump(self, given: Any) -> Any:
        """Hand it to Spark."""
        if given is None:
            return None
        try:
            text = _written(given)
            if self.by_value:
                text = _written(_by_value(json.loads(text)))
        except (TypeError, ValueError, RecursionError) as error:
            raise TypeMismatch(f"{given!r:.200} is not anything that JSON can say: {error}") from None
        check_text(text)
        return text


def _written(given: Any) -> str:
    return json.dumps(
        given,
        sort_keys=True,
        ensure_ascii=False,
        separators=(",", ":"),
        default=_jsonable,
        allow_nan=False,
    )


def _by_value(given: Any) -> Any:
    if isinstance(given, float) and given.is_integer():
        return int(given)
    if isinstance(given, list):
        return [_by_value(each) for each in given]
    if isinstance(given, dict):
        return {name: _by_value(each) for name, each in given.items()}
    return given


def _jsonable(given: Any) -> Any:
    if dataclasses.is_dataclass(given) and not isinstance(given, type):
        return dataclasses.asdict(given)
    if isinstance(given, datetime.datetime | datetime.date):
        return given.isoformat()
    if isinstance(given, decimal.Decimal):
        return str(given)
    if isinstance(given, enum.Enum):
        return given.value
    if isinstance(given, set | frozenset):
        return sorted(given)
    raise TypeError(f"a {type(given).__name__}")


def bare(type: Type) -> Type:
    """Return the type without the permission to be None."""
    return type.of if isinstance(type, Nullable) else type
