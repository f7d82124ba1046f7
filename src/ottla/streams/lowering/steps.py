"""Stateless operators whose functions Python must call, record by record.

R1  Operators in a row are one pass over an Arrow batch: what one returns the next gets, checked against its type,
    without a way through Spark in between.
R2  Columns that no function touches are not looked at, only selected.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from ottla.streams.computing import called_because
from ottla.streams.errors import FunctionFailed
from ottla.streams.lowering.calling import caller, dumper, loader
from ottla.streams.lowering.datatypes import arrow_type
from ottla.streams.lowering.envelope import TAIL_NAMES, schema
from ottla.streams.plan.function import Function
from ottla.streams.plan.node import Node
from ottla.streams.plan.stateless import (
    Branch,
    Filter,
    FlatMap,
    FlatMapValues,
    Map,
    MapValues,
    Peek,
    SelectKey,
)

Pairs = Iterable[tuple[Any, Any]]
OFFERED = ("key", "value")


@dataclass(frozen=True, slots=True)
class Step:
    """An operator as a function from a key and a value to any number of them."""

    node: Node
    expand: Callable[[Any, Any], Pairs]
    changes_key: bool = False
    changes_value: bool = False

    @property
    def place(self) -> str:
        """Where its function stands."""
        return _functions(self.node)[0].place


def step_of(node: Node) -> Step | None:
    """Return the operator as a step, or None where it is none or has no need of Python."""
    maker = _MAKERS.get(type(node))
    return maker(node) if maker is not None and is_called(node) else None


def is_called(node: Node) -> bool:
    """Return whether Python must call the functions of such an operator."""
    return called_because(node) is not None


def called(node: Node) -> Step:
    """Return the operator as a step, whether or not Spark could compute it."""
    return _MAKERS[type(node)](node)


def _functions(node: Node) -> tuple[Function, ...]:
    if isinstance(node, Branch):
        return node.predicates
    if isinstance(node, Filter):
        return (node.predicate,)
    if isinstance(node, SelectKey):
        return (node.selector,)
    if isinstance(node, Peek):
        return (node.action,)
    assert isinstance(node, Map | MapValues | FlatMap | FlatMapValues)
    return (node.mapper,)


def _filter(node: Filter) -> Step:
    holds = predicate(node.predicate, node.name)
    wanted = not node.negated
    return Step(node, lambda key, value: ((key, value),) if holds(key, value) is wanted else ())


def _branch(node: Branch) -> Step:
    tests = [predicate(each, node.name) for each in node.predicates]
    earlier, last = (tests, None) if node.rest else (tests[:-1], tests[-1])

    def expand(key: Any, value: Any) -> Pairs:
        if any(test(key, value) for test in earlier) or (last is not None and not last(key, value)):
            return ()
        return ((key, value),)

    return Step(node, expand)


def _map(node: Map) -> Step:
    call, place = caller(node.mapper, OFFERED, node.name), node.mapper.place

    def expand(key: Any, value: Any) -> Pairs:
        return (as_pair(call(key, value), node.name, place),)

    return Step(node, expand, changes_key=True, changes_value=True)


def _map_values(node: MapValues) -> Step:
    call = caller(node.mapper, OFFERED, node.name)
    return Step(node, lambda key, value: ((key, call(key, value)),), changes_value=True)


def _flat_map(node: FlatMap) -> Step:
    call, place = caller(_listed(node.mapper), OFFERED, node.name), node.mapper.place

    def expand(key: Any, value: Any) -> Pairs:
        return [as_pair(each, node.name, place) for each in call(key, value)]

    return Step(node, expand, changes_key=True, changes_value=True)


def _flat_map_values(node: FlatMapValues) -> Step:
    call = caller(_listed(node.mapper), OFFERED, node.name)
    return Step(node, lambda key, value: [(key, each) for each in call(key, value)], changes_value=True)


def _select_key(node: SelectKey) -> Step:
    call = caller(node.selector, OFFERED, node.name)
    return Step(node, lambda key, value: ((call(key, value), value),), changes_key=True)


def _peek(node: Peek) -> Step:
    call = caller(node.action, OFFERED, node.name)

    def expand(key: Any, value: Any) -> Pairs:
        call(key, value)
        return ((key, value),)

    return Step(node, expand)


_MAKERS: dict[type[Node], Callable[[Any], Step]] = {
    Filter: _filter,
    Branch: _branch,
    Map: _map,
    MapValues: _map_values,
    FlatMap: _flat_map,
    FlatMapValues: _flat_map_values,
    SelectKey: _select_key,
    Peek: _peek,
}


def _listed(function: Function) -> Function:
    """The same function, whose generator is run to its end while its errors are still its own."""
    call = function.call
    return replace(function, call=lambda *given: list(call(*given)), read=None)


def predicate(function: Function, operator: str) -> Callable[[Any, Any], bool]:
    """Return a function of key and value that is true or false, and fails when the user's is neither."""
    call, place = caller(function, OFFERED, operator), function.place

    def holds(key: Any, value: Any) -> bool:
        found = call(key, value)
        if found is True or found is False:
            return found
        if type(found).__name__ in ("bool", "bool_"):  # numpy has one of its own, under one name or the other
            return bool(found)
        hint = " (~ of a bool is a number in Python: write not)" if type(found) is int and found < 0 else ""
        raise FunctionFailed(
            operator, place, f"a predicate returned {found!r:.100}, which is neither True nor False{hint}"
        )

    return holds


def as_pair(found: Any, operator: str, place: str) -> tuple[Any, Any]:
    """Return what a mapper returned as a key and a value."""
    if isinstance(found, tuple | list) and len(found) == 2:
        return found[0], found[1]
    raise FunctionFailed(operator, place, f"returned {found!r:.100}, which is not a pair of key and value")


def stepped(frame: DataFrame, first: Node, steps: tuple[Step, ...]) -> DataFrame:
    """Return the frame that comes of the steps, which begin with what flows out of `first`."""
    run = Run(first, steps)

    def batches(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return run(given)

    return frame.mapInArrow(batches, schema(steps[-1].node))


class Run:
    """A pass over Arrow batches."""

    def __init__(self, first: Node, steps: tuple[Step, ...]) -> None:
        last = steps[-1].node
        self._load_key, self._load_value = loader(first.key), loader(first.value)
        self._expand = [each.expand for each in steps]
        self._settle = [_settled(each) for each in steps[:-1]]
        place = _functions(last)[0].place
        self._dump_key = dumper(last.key, last.name, place)
        self._dump_value = dumper(last.value, last.name, place)
        self._changes_key = any(each.changes_key for each in steps)
        self._changes_value = any(each.changes_value for each in steps)
        self._key_type, self._value_type = arrow_type(last.key), arrow_type(last.value)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Do the steps with each batch."""
        for batch in batches:
            yield self._batch(batch)

    def _batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        load_key, load_value = self._load_key, self._load_value
        dump_key, dump_value = self._dump_key, self._dump_value
        changes_key, changes_value = self._changes_key, self._changes_value
        at: list[int] = []
        keys: list[Any] = []
        values: list[Any] = []
        n = 0
        try:
            pairs = zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True)
            for n, (key, value) in enumerate(pairs):
                for new_key, new_value in self._flow(load_key(key), load_value(value)):
                    at.append(n)
                    if changes_key:
                        keys.append(dump_key(new_key))
                    if changes_value:
                        values.append(dump_value(new_value))
        except FunctionFailed as failed:
            where = [batch.column(name)[n].as_py() for name in ("topic", "partition", "offset")]
            raise failed.located(*where) from failed.__cause__
        # One to one and in order: nothing has to be moved.
        whole = len(at) == batch.num_rows and (not at or (at[-1] == len(at) - 1 and len(set(at)) == len(at)))
        rest = batch if whole else batch.take(pa.array(at, pa.int32()))
        columns = [
            pa.array(keys, self._key_type) if changes_key else rest.column("key"),
            pa.array(values, self._value_type) if changes_value else rest.column("value"),
            *(rest.column(name) for name in TAIL_NAMES),
        ]
        return pa.RecordBatch.from_arrays(columns, names=["key", "value", *TAIL_NAMES])

    def _flow(self, key: Any, value: Any) -> Pairs:
        pairs: Pairs = self._expand[0](key, value)
        for settle, expand in zip(self._settle, self._expand[1:], strict=True):
            pairs = [out for pair in pairs for out in expand(*settle(*pair))]
        return pairs


def _settled(step: Step) -> Callable[[Any, Any], tuple[Any, Any]]:
    """What the next operator gets of this one's result: what it would have got from Spark."""
    node = step.node
    place = _functions(node)[0].place
    key = _round_trip(node.key, node.name, place) if step.changes_key else None
    value = _round_trip(node.value, node.name, place) if step.changes_value else None

    def settle(new_key: Any, new_value: Any) -> tuple[Any, Any]:
        return (key(new_key) if key else new_key), (value(new_value) if value else new_value)

    return settle


def _round_trip(type: Any, operator: str, place: str) -> Callable[[Any], Any]:
    dump, load = dumper(type, operator, place), loader(type)
    return lambda given: load(dump(given))
