"""The stores of a processor: their names and the types of their entries."""

from dataclasses import dataclass, field
from typing import Any

from ottla.client.deprecation import renamed_field
from ottla.streams.errors import TopologyError
from ottla.streams.types.build import type_of
from ottla.streams.types.type import Type
from ottla.streams.types.walk import as_key
from ottla.streams.windows import Span, milliseconds


@renamed_field("ttl_ms", "ttl")
@dataclass(frozen=True, slots=True)
class Store:
    """A store of keys and values. Give types as everywhere: a dataclass, str, int, a DDL string.

    With `ttl`, an entry is removed when stream time is that much later than the write of the entry.
    """

    name: str
    key: Any = str
    value: Any = str
    ttl: Span | None = None
    ttl_ms: int | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ttl_ms", None if self.ttl is None else milliseconds(self.ttl, "ttl"))

    @property
    def key_type(self) -> Type:
        """The type of the keys."""
        return as_key(type_of(self.key))

    @property
    def value_type(self) -> Type:
        """The type of the values."""
        return type_of(self.value)


@dataclass(frozen=True, slots=True)
class WindowStore:
    """A store of values by key and time. A value is removed when stream time is `retention` later than its time."""

    name: str
    key: Any = str
    value: Any = str
    retention: Span = field(default="1 day", kw_only=True)
    retention_ms: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "retention_ms", milliseconds(self.retention, "retention"))
        if self.retention_ms <= 0:
            raise TopologyError(f"retention: {self.retention!r} must be longer than nothing")

    @property
    def key_type(self) -> Type:
        """The type of the keys."""
        return as_key(type_of(self.key))

    @property
    def value_type(self) -> Type:
        """The type of the values."""
        return type_of(self.value)
