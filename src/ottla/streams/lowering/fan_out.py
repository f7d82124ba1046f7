"""All paths of one record from its origin, by Python: depth first, as Kafka Streams forwards.

    paths = paths_from(flow, origin, context)
    paths.begin()                           once a micro-batch
    paths.follow(key, value, old, emit)     for each record; emit(…) is called with what comes out, in order

N1  What comes out is emitted in the order in which Kafka Streams forwards: who was said first is asked first, and all
    that comes of one result of a flat_map before the next.
N2  Keys and values are plain on a path, and made anew for each function, so that none sees what another changed.
N3  Each function is called once for each record that reaches its operator by each path.

An emission is (number of the stage input, key, value, old) for a stage, and (TO_OUTPUT, output, topic, partition,
key, value, seen) at an end: `seen` is the record itself, plain, where it leaves for a function of this program. The
number is below zero where keys may have changed on the way: Kafka Streams sends it through a topic of its own.
"""

from collections.abc import Callable
from typing import Any

from ottla.streams.lowering.calling import caller, dumper, loader
from ottla.streams.lowering.context import Context
from ottla.streams.lowering.emission import TO_OUTPUT, Emit, Path, Paths
from ottla.streams.lowering.flow import End, Flow, StageInput
from ottla.streams.plan.aggregates import Regroup
from ottla.streams.plan.joins import GlobalTableJoin
from ottla.streams.plan.node import Node
from ottla.streams.plan.sinks import To
from ottla.streams.plan.stateless import Merge, Repartition
from ottla.streams.plan.tables import TableFilter, TableMapValues, ToStream, ToTable

OFFERED = ("key", "value")


def paths_from(flow: Flow, origin: Node, context: Context) -> Paths:
    """Return the paths from an origin."""
    builder = _PathBuilder(flow, context)
    follow = builder.out_of(origin)
    return Paths(_with_keys(follow) if origin.is_table else follow, tuple(builder.begins))


def _with_keys(after: Path) -> Path:
    """A table has no rows without a key, also one of a topic that nobody remembers."""

    def path(key: Any, value: Any, old: Any, emit: Emit) -> None:
        if key is not None:
            after(key, value, old, emit)

    return path


class _PathBuilder:
    """Makes functions of operators."""

    def __init__(self, flow: Flow, context: Context) -> None:
        self._flow = flow
        self._context = context
        self.begins: list[Callable[[], None]] = []

    def out_of(self, node: Node) -> Path:
        """Return what happens with a record that flows out of a node."""
        paths = [self._into(each, node) for each in self._flow.readers(node)]
        if len(paths) == 1:
            return paths[0]

        def each_in_turn(key: Any, value: Any, old: Any, emit: Emit) -> None:
            for path in paths:
                path(key, value, old, emit)

        return each_in_turn

    def _into(self, reader: Node | StageInput | End, node: Node) -> Path:
        if isinstance(reader, StageInput):
            return _stage_input(reader)
        if isinstance(reader, End):
            return _row(reader, reader.node) if isinstance(reader.node, To) else _seen(reader)
        after = self.out_of(reader)
        if isinstance(reader, Merge | Repartition):
            return after
        if isinstance(reader, GlobalTableJoin):
            path, begin = _looking_up(reader, after, self._context)
            self.begins.append(begin)
            return path
        maker = _TABLES.get(type(reader))
        return _stepping(reader, after) if maker is None else maker(reader, after)


def _stage_input(stage_input: StageInput) -> Path:
    stage = stage_input.stage
    number, olds = -stage_input.number if stage_input.moves else stage_input.number, stage.olds
    if stage.values:
        return lambda key, value, old, emit: emit((number, key, value, old if olds else None))

    def whole(key: Any, value: Any, old: Any, emit: Emit) -> None:
        if key is not None and value is not None:
            emit((number, key, None, None))

    return whole


def _stepping(node: Node, after: Path) -> Path:
    """An operator on a stream, with its functions."""
    from ottla.streams.lowering.steps import called

    step = called(node)
    expand, (load_key, load_value) = step.expand, _loaders(node.input)
    place = step.place
    dump_key = dumper(node.key, node.name, place) if step.changes_key else None
    dump_value = dumper(node.value, node.name, place) if step.changes_value else None

    def path(key: Any, value: Any, old: Any, emit: Emit) -> None:
        for new_key, new_value in expand(load_key(key), load_value(value)):
            after(
                dump_key(new_key) if dump_key else key,
                dump_value(new_value) if dump_value else value,
                None,
                emit,
            )

    return path


def _loaders(node: Node) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    return loader(node.key), loader(node.value)


# Tables


def _to_stream(node: Node, after: Path) -> Path:
    return lambda key, value, old, emit: after(key, value, None, emit)


def _to_table(node: Node, after: Path) -> Path:
    def path(key: Any, value: Any, old: Any, emit: Emit) -> None:
        if key is not None:
            after(key, value, None, emit)

    return path


def _table_filter(node: TableFilter, after: Path) -> Path:
    from ottla.streams.lowering.steps import predicate

    holds, wanted = predicate(node.predicate, node.name), not node.negated
    load_key, load_value = _loaders(node.input)

    def side(key: Any, value: Any) -> Any:
        is_in = value is not None and holds(load_key(key), load_value(value)) is wanted
        return value if is_in else None

    def path(key: Any, value: Any, old: Any, emit: Emit) -> None:
        new, was = side(key, value), side(key, old)
        if new is not None or was is not None:
            after(key, new, was, emit)

    return path


def _table_map_values(node: TableMapValues, after: Path) -> Path:
    call = caller(node.mapper, OFFERED, node.name)
    dump = dumper(node.value, node.name, node.mapper.place)
    load_key, load_value = _loaders(node.input)

    def side(key: Any, value: Any) -> Any:
        return None if value is None else dump(call(load_key(key), load_value(value)))

    return lambda key, value, old, emit: after(key, side(key, value), side(key, old), emit)


def _regroup(node: Regroup, after: Path) -> Path:
    from ottla.streams.lowering.stateful.keycode import same_key
    from ottla.streams.lowering.steps import as_pair

    call, place, name = caller(node.selector, OFFERED, node.name), node.selector.place, node.name
    load_key, load_value = _loaders(node.input)
    dump_key = dumper(node.key, name, place)
    dump_value = dumper(node.selector.result.parts[1], name, place)  # type: ignore[attr-defined]
    is_same = same_key(node.key)

    def chosen(key: Any, value: Any) -> tuple[Any, Any] | None:
        if value is None:
            return None
        pair = as_pair(call(load_key(key), load_value(value)), name, place)
        return None if pair[0] is None or pair[1] is None else (dump_key(pair[0]), dump_value(pair[1]))

    def path(key: Any, value: Any, old: Any, emit: Emit) -> None:
        new, was = chosen(key, value), chosen(key, old)
        if new is not None and was is not None and is_same(new[0], was[0]):
            after(new[0], (new[1], was[1]), None, emit)
            return
        if was is not None:
            after(was[0], (None, was[1]), None, emit)
        if new is not None:
            after(new[0], (new[1], None), None, emit)

    return path


_TABLES: dict[type[Node], Callable[[Any, Path], Path]] = {
    ToStream: _to_stream,
    ToTable: _to_table,
    TableFilter: _table_filter,
    TableMapValues: _table_map_values,
    Regroup: _regroup,
}


def _looking_up(node: GlobalTableJoin, after: Path, context: Context) -> tuple[Path, Callable[[], None]]:
    from ottla.streams.lowering.stateful.global_table_join import look_up

    looking = look_up(node, context)

    def path(key: Any, value: Any, old: Any, emit: Emit) -> None:
        joined = looking.joined(key, value)
        if joined is not None:
            after(key, joined[0], None, emit)

    return path, looking.begin


# Ends


def _seen(end: End) -> Path:
    from ottla.streams.lowering.stateful.keycode import key_code

    number, encode = end.number, key_code(end.given.key).encode
    return lambda key, value, old, emit: emit(
        (TO_OUTPUT, number, None, None, None if key is None else encode(key), None, (key, value))
    )


def _row(end: End, node: To) -> Path:
    from ottla.streams.lowering.writing import row_maker

    number, row = end.number, row_maker(node)
    load_key, load_value = _loaders(node.input)
    return lambda key, value, old, emit: emit(
        (TO_OUTPUT, number, *row(load_key(key), load_value(value)), None)
    )
