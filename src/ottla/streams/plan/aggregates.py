"""Operators that gather the records of a key, or of a key and a window, into one value."""

from dataclasses import dataclass
from typing import ClassVar

from ottla.streams.plan.function import Function
from ottla.streams.plan.node import StreamNode, TableNode
from ottla.streams.windows import Window


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Aggregate(TableNode):
    """A value for each key of a stream, or each key and window (then the key's type is Windowed).

    Records whose key or value is null are dropped. Without `initializer` it is a reduce: the first value of a key is
    its aggregate, and the adder is (aggregate, value). A count is an aggregate from 0 whose adder adds 1.
    """

    kind: ClassVar[str] = "aggregate"
    stateful: ClassVar[bool] = True
    method: str  # count, reduce or aggregate
    initializer: Function | None  # () -> aggregate
    adder: Function | None  # reduce: (aggregate, value); aggregate: (key, value, aggregate); count: None
    merger: Function | None = None  # (key, aggregate, aggregate) -> aggregate, of session windows
    window: Window | None = None
    emit: str = "update"  # or "close": one final result a window, a stream of results rather than of changes


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Cogroup(TableNode):
    """One aggregate over several streams of one key type: `adders[i]` adds the records of `inputs[i]`."""

    kind: ClassVar[str] = "cogroup"
    stateful: ClassVar[bool] = True
    initializer: Function  # () -> aggregate
    adders: tuple[Function, ...]  # (key, value, aggregate) -> aggregate
    merger: Function | None = None
    window: Window | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Regroup(StreamNode):
    """A table's changes under other keys: for each change first what leaves its old group, then what joins its new one.

    Out of it flow records whose value is a struct of `added` and `removed`, of which one is null. It remembers nothing:
    a change brings its old value with it.
    """

    kind: ClassVar[str] = "regroup"
    selector: Function  # (key, value) -> (key, value)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TableAggregate(TableNode):
    """A value for each group of a table's rows. Its input is a Regroup: removed values are subtracted, then added
    ones added.
    """

    kind: ClassVar[str] = "table_aggregate"
    stateful: ClassVar[bool] = True
    method: str  # count, reduce or aggregate
    initializer: Function | None
    adder: Function | None  # reduce: (aggregate, value); aggregate: (key, value, aggregate)
    subtractor: Function | None
