"""All ways of one record from its origin, by Python: depth first, as Kafka Streams forwards.

    ways = fan(flow, origin, context)
    ways.begin()                                     once a micro-batch
    ways.follow(key, value, old, put)                for each record; put(…) is called with what arrives, in order

N1  What arrives is put in the order in which Kafka Streams forwards: who was said first is asked first, and all that
    comes of one result of a flat_map before the next.
N2  Keys and values are plain on their way, and made anew for each function, so that none sees what another changed.
N3  Each function is called once for each record that reaches its operator by each way.

What arrives is (inlet number, key, value, old) for a stage, and (LEAVES, output, topic, partition, key, value, seen)
at an end: `seen` is the record itself, plain, where it leaves for a function of this program. A record whose key was
changed on the way arrives with the inlet's number below zero, for Kafka Streams sends it through a topic of its own.
"""

from collections.abc import Callable
from typing import Any

from ottla.streams.lowering.arrivals import LEAVES, Put, Way, Ways
from ottla.streams.lowering.calling import caller, dumper, loader
from ottla.streams.lowering.context import Context
from ottla.streams.lowering.flow import End, Flow, Inlet
from ottla.streams.plan.aggregates import Regroup
from ottla.streams.plan.joins import GlobalTableJoin
from ottla.streams.plan.node import Node
from ottla.streams.plan.process import Process
from ottla.streams.plan.sinks import To
from ottla.streams.plan.stateless import FlatMap, Map, Merge, Repartition, SelectKey
from ottla.streams.plan.tables import TableFilter, TableMapValues, ToStream, ToTable

OFFERED = ("key", "value")


def fan(flow: Flow, origin: Node, context: Context) -> Ways:
    """Return the ways from an origin."""
    weaver = _Weaver(flow, context)
    changed = isinstance(origin, Process) and not origin.values_only
    return Ways(weaver.out_of(origin, changed), tuple(weaver.begins))


class _Weaver:
    """Makes functions of operators."""

    def __init__(self, flow: Flow, context: Context) -> None:
        self._flow = flow
        self._context = context
        self.begins: list[Callable[[], None]] = []

    def out_of(self, node: Node, changed: bool) -> Way:
        """Return what happens with a record that flows out of a node."""
        ways = [self._into(each, node, changed) for each in self._flow.readers(node)]
        if len(ways) == 1:
            return ways[0]

        def each_in_turn(key: Any, value: Any, old: Any, put: Put) -> None:
            for way in ways:
                way(key, value, old, put)

        return each_in_turn

    def _into(self, reader: Node | Inlet | End, node: Node, changed: bool) -> Way:
        if isinstance(reader, Inlet):
            return _inlet(reader, changed)
        if isinstance(reader, End):
            return _row(reader, reader.node) if isinstance(reader.node, To) else _seen(reader)
        changed = changed or isinstance(reader, Map | FlatMap | SelectKey | Regroup)
        after = self.out_of(reader, changed)
        if isinstance(reader, Merge | Repartition):
            return after
        if isinstance(reader, GlobalTableJoin):
            way, begin = _looking_up(reader, after, self._context)
            self.begins.append(begin)
            return way
        maker = _TABLES.get(type(reader))
        return _stepping(reader, after) if maker is None else maker(reader, after)


def _inlet(inlet: Inlet, changed: bool) -> Way:
    stage = inlet.stage
    moves = changed and not isinstance(stage.node, Process)
    number, olds = -inlet.number if moves else inlet.number, stage.olds
    if stage.values:
        return lambda key, value, old, put: put((number, key, value, old if olds else None))

    def whole(key: Any, value: Any, old: Any, put: Put) -> None:
        if key is not None and value is not None:
            put((number, key, None, None))

    return whole


def _stepping(node: Node, after: Way) -> Way:
    """An operator on a stream, with its functions."""
    from ottla.streams.lowering.steps import called

    step = called(node)
    expand, (load_key, load_value) = step.expand, _loaders(node.input)
    place = step.place
    dump_key = dumper(node.key, node.name, place) if step.changes_key else None
    dump_value = dumper(node.value, node.name, place) if step.changes_value else None

    def way(key: Any, value: Any, old: Any, put: Put) -> None:
        for new_key, new_value in expand(load_key(key), load_value(value)):
            after(
                dump_key(new_key) if dump_key else key,
                dump_value(new_value) if dump_value else value,
                None,
                put,
            )

    return way


def _loaders(node: Node) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    return loader(node.key), loader(node.value)


# Tables


def _to_stream(node: Node, after: Way) -> Way:
    return lambda key, value, old, put: after(key, value, None, put)


def _to_table(node: Node, after: Way) -> Way:
    def way(key: Any, value: Any, old: Any, put: Put) -> None:
        if key is not None:
            after(key, value, None, put)

    return way


def _table_filter(node: TableFilter, after: Way) -> Way:
    from ottla.streams.lowering.steps import predicate

    holds, wanted = predicate(node.predicate, node.name), not node.negated
    load_key, load_value = _loaders(node.input)

    def side(key: Any, value: Any) -> Any:
        is_in = value is not None and holds(load_key(key), load_value(value)) is wanted
        return value if is_in else None

    def way(key: Any, value: Any, old: Any, put: Put) -> None:
        new, was = side(key, value), side(key, old)
        if new is not None or was is not None:
            after(key, new, was, put)

    return way


def _table_map_values(node: TableMapValues, after: Way) -> Way:
    call = caller(node.mapper, OFFERED, node.name)
    dump = dumper(node.value, node.name, node.mapper.place)
    load_key, load_value = _loaders(node.input)

    def side(key: Any, value: Any) -> Any:
        return None if value is None else dump(call(load_key(key), load_value(value)))

    return lambda key, value, old, put: after(key, side(key, value), side(key, old), put)


def _regroup(node: Regroup, after: Way) -> Way:
    from ottla.streams.lowering.steps import as_pair

    call, place, name = caller(node.selector, OFFERED, node.name), node.selector.place, node.name
    load_key, load_value = _loaders(node.input)
    dump_key, dump_value = (dumper(each, name, place) for each in node.selector.result.parts)  # type: ignore[attr-defined]

    def chosen(key: Any, value: Any) -> tuple[Any, Any] | None:
        if value is None:
            return None
        pair = as_pair(call(load_key(key), load_value(value)), name, place)
        return None if pair[0] is None or pair[1] is None else (dump_key(pair[0]), dump_value(pair[1]))

    def way(key: Any, value: Any, old: Any, put: Put) -> None:
        new, was = chosen(key, value), chosen(key, old)
        if new is not None and was is not None and new[0] == was[0]:
            after(new[0], (new[1], was[1]), None, put)
            return
        if was is not None:
            after(was[0], (None, was[1]), None, put)
        if new is not None:
            after(new[0], (new[1], None), None, put)

    return way


_TABLES: dict[type[Node], Callable[[Any, Way], Way]] = {
    ToStream: _to_stream,
    ToTable: _to_table,
    TableFilter: _table_filter,
    TableMapValues: _table_map_values,
    Regroup: _regroup,
}


def _looking_up(node: GlobalTableJoin, after: Way, context: Context) -> tuple[Way, Callable[[], None]]:
    from ottla.streams.lowering.stateful.global_table_join import look_up

    looking = look_up(node, context)

    def way(key: Any, value: Any, old: Any, put: Put) -> None:
        joined = looking.joined(key, value)
        if joined is not None:
            after(key, joined[0], None, put)

    return way, looking.begin


# Ends


def _seen(end: End) -> Way:
    from ottla.streams.lowering.stateful.keycode import key_code

    number, encode = end.number, key_code(end.given.key).encode
    return lambda key, value, old, put: put(
        (LEAVES, number, None, None, None if key is None else encode(key), None, (key, value))
    )


def _row(end: End, node: To) -> Way:
    from ottla.streams.lowering.writing import row_maker

    number, row = end.number, row_maker(node)
    load_key, load_value = _loaders(node.input)
    return lambda key, value, old, put: put((LEAVES, number, *row(load_key(key), load_value(value)), None))
