"""What a declaration says of one field: its type, the versions that carry it, its default.

A field written bare is in every version of its message. `since` narrows that, and says the rest:

    name: NullableString = since(0, until=12, nullable="10+", ignorable=True)

F1  In a version that lacks the field, decoding yields the default.
F2  In a version that lacks the field, encoding another value than the default fails, unless it is ignorable.
F3  A tagged field is left out of the bytes when it has its default.
F4  A tagged struct that cannot be null on the wire may be None: it is then left out, and Kafka's peer sees the
    struct with its defaults.
"""

from types import GenericAlias, NoneType, UnionType
from typing import Any, NamedTuple, get_args

from ottla.wire.primitive import Primitive

LAST = 32767
EVERY = range(LAST + 1)
NO_VERSION = range(0)


class _Unset:
    """Stands where a declaration gives no default."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET = _Unset()


def version_range(text: str) -> range:
    """Kafka's notation of versions: "3", "3-12", "9+", "none"."""
    if text == "none":
        return NO_VERSION
    if text.endswith("+"):
        return range(int(text[:-1]), LAST + 1)
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


class Since(NamedTuple):
    """The right-hand side of a field that is more than a type and a default."""

    versions: range
    default: Any
    nullable: range | None
    tag: int | None
    ignorable: bool
    flexible: bool


def since(
    version: int,
    *,
    until: int = LAST,
    default: Any = UNSET,
    nullable: str | None = None,
    tag: int | None = None,
    ignorable: bool = False,
    flexible: bool = True,
) -> Any:
    """Declare a field present from `version` until `until`, both included.

    `nullable` names the versions in which null is allowed, when those are fewer than the field's own;
    `tag` makes it a tagged field; `flexible=False` keeps the old two-byte length in flexible versions.
    """
    allowed = None if nullable is None else version_range(nullable)
    return Since(range(version, until + 1), default, allowed, tag, ignorable, flexible)


class Field(NamedTuple):
    """One resolved field. `kind` is a Primitive, or the Struct class; `array` says there are many of them."""

    name: str
    kind: Any
    array: bool
    versions: range
    nullable: range
    default: Any
    tag: int | None
    ignorable: bool
    flexible: bool

    @property
    def is_struct(self) -> bool:
        """Whether the field, or each element of it, is a struct."""
        return not isinstance(self.kind, Primitive)

    @property
    def fixed(self) -> bool:
        """Whether the field always has the same size, so that it can share one unpack with its neighbours."""
        return not self.array and isinstance(self.kind, Primitive) and self.kind.code is not None

    @property
    def default_is_fresh(self) -> bool:
        """Whether every message needs its own copy of the default, because it could be changed in place."""
        return self.default is UNSET


def resolve(name: str, annotation: Any, given: Any, lookup: Any) -> Field:
    """Read one declaration. `lookup` finds the struct behind a quoted name."""
    kind, nullable_type = _without_none(annotation)
    array = isinstance(kind, GenericAlias)
    if array:
        (kind,) = get_args(kind)
    if isinstance(kind, str):
        kind = lookup(kind)
    if not array and isinstance(kind, Primitive):
        nullable_type = kind.nullable
    spec = given if isinstance(given, Since) else Since(EVERY, given, None, None, False, True)
    default = spec.default
    if default is UNSET and not array and isinstance(kind, Primitive):
        default = kind.default
    nullable = spec.versions if nullable_type else NO_VERSION
    if spec.nullable is not None:
        nullable = spec.nullable
    elif spec.tag is not None and default is None and not array and not isinstance(kind, Primitive):
        nullable = NO_VERSION
    return Field(name, kind, array, spec.versions, nullable, default, spec.tag, spec.ignorable, spec.flexible)


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if isinstance(annotation, str):
        return annotation.removesuffix(" | None"), annotation.endswith(" | None")
    if isinstance(annotation, UnionType):
        (kind,) = (each for each in get_args(annotation) if each is not NoneType)
        return kind, True
    return annotation, False
