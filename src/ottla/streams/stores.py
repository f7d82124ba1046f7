"""The stores of a processor, as values: what they are called and what is in them."""

from dataclasses import dataclass, field
from typing import Any

from ottla.streams.errors import TopologyError
from ottla.streams.types.build import type_of
from ottla.streams.types.type import Type
from ottla.streams.types.walk import as_key
from ottla.streams.windows import Span, milliseconds


@dataclass(frozen=True, slots=True)
class Store:
    """A store of keys and values. Types are given as everywhere: a dataclass, str, int, a DDL text.

    With `ttl_ms` an entry is forgotten when stream time has moved so far since it was written.
    """

    name: str
    key: Any = str
    value: Any = str
    ttl_ms: int | None = None

    @property
    def key_type(self) -> Type:
        """What its keys are."""
        return as_key(type_of(self.key))

    @property
    def value_type(self) -> Type:
        """What its values are."""
        return type_of(self.value)


@dataclass(frozen=True, slots=True)
class WindowStore:
    """A store of values by key and time, each kept for `retention` of stream time."""

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
        """What its keys are."""
        return as_key(type_of(self.key))

    @property
    def value_type(self) -> Type:
        """What its values are."""
        return type_of(self.value)
