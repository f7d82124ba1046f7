"""Operators on streams that remember nothing between records."""

from dataclasses import dataclass
from typing import ClassVar

from ottla.streams.plan.function import Function
from ottla.streams.plan.node import StreamNode


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Filter(StreamNode):
    """Keeps the records for which the predicate is true, or false when `negated`."""

    kind: ClassVar[str] = "filter"
    predicate: Function  # (key, value) -> bool
    negated: bool = False


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Branch(StreamNode):
    """One way out of a split: the records whose first true predicate is `predicates[-1]`.

    Those before it are the ways that were offered earlier. The default way has `rest` set: none of them is true.
    """

    kind: ClassVar[str] = "branch"
    predicates: tuple[Function, ...]
    rest: bool = False


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Map(StreamNode):
    """A new key and a new value for each record."""

    kind: ClassVar[str] = "map"
    mapper: Function  # (key, value) -> (key, value)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MapValues(StreamNode):
    """A new value for each record."""

    kind: ClassVar[str] = "map_values"
    mapper: Function  # (key, value) -> value


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FlatMap(StreamNode):
    """Any number of keys and values for each record, in their order."""

    kind: ClassVar[str] = "flat_map"
    mapper: Function  # (key, value) -> iterable of (key, value)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FlatMapValues(StreamNode):
    """Any number of values for each record, in their order, under its key."""

    kind: ClassVar[str] = "flat_map_values"
    mapper: Function  # (key, value) -> iterable of values


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SelectKey(StreamNode):
    """A new key for each record."""

    kind: ClassVar[str] = "select_key"
    selector: Function  # (key, value) -> key


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Merge(StreamNode):
    """The records of all its inputs, which have the same types."""

    kind: ClassVar[str] = "merge"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Peek(StreamNode):
    """Shows each record to a function and passes it on."""

    kind: ClassVar[str] = "peek"
    action: Function  # (key, value) -> ignored


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Repartition(StreamNode):
    """Brings records with the same key together, in so many partitions."""

    kind: ClassVar[str] = "repartition"
    partitions: int | None = None
