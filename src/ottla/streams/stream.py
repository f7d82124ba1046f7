"""A stream of records, and what can be said of it. Every operator returns a new stream; nothing runs.

Functions are called with the value, or with key and value if they take two arguments. `key=` and `value=` say what they
return, where the function itself does not.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ottla.streams.errors import TopologyError, TypeMismatch
from ottla.streams.functions import action, function, place_of, predicate
from ottla.streams.joining import join_streams, join_with_global_table, join_with_table
from ottla.streams.plan.distinct import Distinct
from ottla.streams.plan.node import Node
from ottla.streams.plan.process import Process
from ottla.streams.plan.sinks import ForEach, Print, To
from ottla.streams.plan.stateless import (
    Branch,
    Filter,
    FlatMap,
    FlatMapValues,
    Map,
    MapValues,
    Merge,
    Peek,
    Repartition,
    SelectKey,
)
from ottla.streams.plan.tables import ToTable
from ottla.streams.said import Said, given_type
from ottla.streams.topic_name import check_topic
from ottla.streams.types.serde import Serde, serde
from ottla.streams.types.struct import Pair, bare
from ottla.streams.types.type import Integer, Text
from ottla.streams.windows import JoinWindow, Span, milliseconds

if TYPE_CHECKING:
    from ottla.streams.grouped import GroupedStream
    from ottla.streams.stores import Store, WindowStore
    from ottla.streams.table import GlobalTable, Table

Call = Callable[..., Any]


class Stream(Said):
    """A sequence of records."""

    _elsewhere: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("count", "reduce", "aggregate", "cogroup"),
            "group first, as in stream.group_by_key().count()",
        ),
        "windowed_by": "group first, as in stream.group_by_key().windowed_by(…).count()",
        "through": "to(topic), and app.stream(topic) reads it",
        "suppress": "it is a table's: stream.group_by_key().windowed_by(…).count().suppress(…)",
        "to_stream": "it is a stream already",
    }

    def filter(self, keep: Call, *, name: str | None = None) -> "Stream":
        """Return the records for which `keep` is True."""
        return self._filtered(keep, name, negated=False)

    def filter_not(self, drop: Call, *, name: str | None = None) -> "Stream":
        """Return the records for which `drop` is False."""
        return self._filtered(drop, name, negated=True)

    def _filtered(self, call: Call, name: str | None, *, negated: bool) -> "Stream":
        held = predicate(call, self._offered, "filter_not" if negated else "filter")
        return self._then(self._add(Filter, name, predicate=held, negated=negated))

    def map(self, mapper: Call, *, key: Any = None, value: Any = None, name: str | None = None) -> "Stream":
        """Return a record with the key and value that `mapper` returns, for each record."""
        found = self._pairing(mapper, "map", key, value)
        new_key, new_value = _halves(found.result)
        return self._then(self._add(Map, name, mapper=found, key=new_key, value=new_value))

    def map_values(self, mapper: Call, *, value: Any = None, name: str | None = None) -> "Stream":
        """Return each record with the value that `mapper` returns."""
        found = function(mapper, self._offered, "map_values", given_type(value))
        return self._then(self._add(MapValues, name, mapper=found, value=found.result))

    def flat_map(
        self, mapper: Call, *, key: Any = None, value: Any = None, name: str | None = None
    ) -> "Stream":
        """Return a record for each key and value that `mapper` returns, for each record."""
        found = self._pairing(mapper, "flat_map", key, value, many=True)
        new_key, new_value = _halves(found.result)
        return self._then(self._add(FlatMap, name, mapper=found, key=new_key, value=new_value))

    def flat_map_values(self, mapper: Call, *, value: Any = None, name: str | None = None) -> "Stream":
        """Return a record for each value that `mapper` returns, with the key of the original record."""
        found = function(mapper, self._offered, "flat_map_values", given_type(value), many=True)
        return self._then(self._add(FlatMapValues, name, mapper=found, value=found.result))

    def select_key(self, selector: Call, *, key: Any = None, name: str | None = None) -> "Stream":
        """Return each record with the key that `selector` returns."""
        found = function(selector, self._offered, "select_key", given_type(key))
        return self._then(self._add(SelectKey, name, selector=found, key=found.result))

    def branch(self, *predicates: Call, name: str | None = None) -> "list[Stream]":
        """Return a stream for each predicate. A record goes to the first stream whose predicate is True, or to none."""
        if not predicates:
            raise TopologyError("branch takes at least one predicate")
        held = tuple(predicate(each, self._offered, "branch") for each in predicates)
        return [
            self._then(self._add(Branch, f"{name}-{n}" if name else None, predicates=held[:n]))
            for n in range(1, len(held) + 1)
        ]

    def split(
        self, ways: Mapping[str, Call], *, default: str | None = None, name: str | None = None
    ) -> "dict[str, Stream]":
        """Return named streams as `branch` does, and with `default` one more for all other records."""
        if default in ways:
            raise TopologyError(f"split: there are two ways {default!r}")
        streams = dict(zip(ways, self.branch(*ways.values(), name=name), strict=True))
        if default is not None:
            held = tuple(predicate(each, self._offered, "split") for each in ways.values())
            rest = self._add(Branch, f"{name}-{default}" if name else None, predicates=held, rest=True)
            streams[default] = self._then(rest)
        return streams

    def merge(self, *others: "Stream", name: str | None = None) -> "Stream":
        """Return the records of this stream and of other streams with the same types."""
        for other in others:
            self._same_app(other, "merge")
            if (other._node.key, other._node.value) != (self._node.key, self._node.value):
                raise TypeMismatch(
                    f"merge: {other.name} is {other._node.key} → {other._node.value}, and {self.name} is "
                    f"{self._node.key} → {self._node.value}"
                )
        return self._then(self._add(Merge, name, inputs=(self._node, *(each._node for each in others))))

    def peek(self, look: Call, *, name: str | None = None) -> "Stream":
        """Call `look` with each record, in the process that handles it, and return the same records."""
        return self._then(self._add(Peek, name, action=action(look, self._offered, "peek")))

    def repartition(self, partitions: int | None = None, *, name: str | None = None) -> "Stream":
        """Return the same records in this number of partitions, records with equal keys together."""
        if partitions is not None and partitions < 1:
            raise TopologyError(f"repartition: {partitions} partitions are none")
        return self._then(self._add(Repartition, name, partitions=partitions))

    def distinct(self, *, within: Span | None = None, name: str | None = None) -> "Stream":
        """Return the first record of each key. With `within`, the first of those that are that close in event time."""
        span = None if within is None else milliseconds(within, "within")
        if span is not None and span < 0:
            raise TopologyError(f"distinct: {within!r} must not be negative")
        return self._then(self._add(Distinct, name, within_ms=span))

    def to(
        self,
        topic: str | Call,
        *,
        key: Any = None,
        value: Any = None,
        partitioner: Call | None = None,
        name: str | None = None,
    ) -> None:
        """Write each record to a topic, or to the topic that a function returns.

        `key` and `value` are serdes; by default those of the types. `partitioner` returns the partition. Without it the
        hash of the key decides, as in other Kafka clients.
        """
        self._to(topic, key, value, partitioner, name)

    def _to(
        self,
        topic: str | Call,
        key: Any,
        value: Any,
        partitioner: Call | None,
        name: str | None,
        *,
        compacted: bool = False,
    ) -> None:
        if isinstance(topic, str):
            check_topic(topic, "to")
        extractor = None if isinstance(topic, str) else function(topic, self._offered, "to", Text())
        chooser = None
        if partitioner is not None:
            chooser = function(partitioner, self._offered, "to: partitioner", Integer(64))
        self._add(
            To,
            name,
            topic=topic if isinstance(topic, str) else None,
            extractor=extractor,
            partitioner=chooser,
            key_serde=_written(self._node, "key", key),
            value_serde=_written(self._node, "value", value),
            compacted=compacted,
        )

    def for_each(self, do: Call, *, name: str | None = None) -> None:
        """Call `do` with each record in this process, after the micro-batch is committed.

        It is called again for a micro-batch that the end of the program has interrupted.
        """
        self._add(ForEach, name, action=action(do, self._offered, "for_each"))

    def print(self, label: str = "", *, name: str | None = None) -> None:
        """Print each record on the standard output of this program."""
        self._add(Print, name, label=label or self.name)

    def to_table(self, *, name: str | None = None) -> "Table":
        """Return the stream as a table. A record replaces the row with its key; a null value deletes the row."""
        from ottla.streams.table import Table

        return Table(self._topology, self._add(ToTable, name))

    def group_by_key(self) -> "GroupedStream":
        """Return the stream grouped by its keys."""
        from ottla.streams.grouped import GroupedStream

        return GroupedStream(self._topology, self._node)

    def group_by(self, selector: Call, *, key: Any = None, name: str | None = None) -> "GroupedStream":
        """Return the stream grouped by the keys that `selector` returns."""
        return self.select_key(selector, key=key, name=name).group_by_key()

    def join(
        self,
        other: "Stream | Table | GlobalTable",
        joiner: Call,
        *,
        within: Span | JoinWindow | None = None,
        on: Call | None = None,
        value: Any = None,
        name: str | None = None,
    ) -> "Stream":
        """Return the result of `joiner` for pairs of records.

        With a stream: pairs with the same key that are at most `within` apart. With a table: each record and the row
        with its key. With a global table: each record and the row with the key `on(key, value)`.
        """
        return self._joined("inner", other, joiner, within, on, value, name)

    def left_join(
        self,
        other: "Stream | Table | GlobalTable",
        joiner: Call,
        *,
        within: Span | JoinWindow | None = None,
        on: Call | None = None,
        value: Any = None,
        name: str | None = None,
    ) -> "Stream":
        """Return what `join` returns, and for a record without a partner the result of `joiner` with None."""
        return self._joined("left", other, joiner, within, on, value, name)

    def outer_join(
        self,
        other: "Stream",
        joiner: Call,
        *,
        within: Span | JoinWindow,
        value: Any = None,
        name: str | None = None,
    ) -> "Stream":
        """Return what `left_join` returns, for records of both streams."""
        return self._joined("outer", other, joiner, within, None, value, name)

    def _joined(
        self, how: str, other: Any, joiner: Call, within: Any, on: Call | None, value: Any, name: str | None
    ) -> "Stream":
        from ottla.streams.table import GlobalTable, Table

        if isinstance(other, GlobalTable):
            node: Node = join_with_global_table(self, other, how, joiner, on, value, name)
        elif isinstance(other, Table):
            node = join_with_table(self, other, how, joiner, value, name)
        elif isinstance(other, Stream):
            node = join_streams(self, other, how, joiner, within, value, name)
        else:
            raise TopologyError(f"join: {other!r:.100} is neither a stream nor a table")
        return self._then(node)

    def process(
        self,
        processor: Call,
        *,
        stores: "Sequence[Store | WindowStore]" = (),
        key: Any = None,
        value: Any = None,
        name: str | None = None,
    ) -> "Stream":
        """Return the records that a processor forwards. `key` and `value` are their types, if they differ."""
        return self._processed(processor, stores, key, value, name, values_only=False)

    def process_values(
        self,
        processor: Call,
        *,
        stores: "Sequence[Store | WindowStore]" = (),
        value: Any = None,
        name: str | None = None,
    ) -> "Stream":
        """Return the records that a processor forwards. It must not change the keys."""
        return self._processed(processor, stores, None, value, name, values_only=True)

    def _processed(
        self, processor: Call, stores: Any, key: Any, value: Any, name: str | None, *, values_only: bool
    ) -> "Stream":
        names = [each.name for each in stores]
        if len(set(names)) != len(names):
            raise TopologyError(f"process: two stores have one name: {', '.join(sorted(names))}")
        return self._then(
            self._add(
                Process,
                name,
                processor=processor,
                stores=tuple(stores),
                key=given_type(key) or self._node.key,
                value=given_type(value) or self._node.value,
                values_only=values_only,
                place=place_of(processor),
            )
        )

    def _then(self, node: Node) -> "Stream":
        return Stream(self._topology, node)


def _halves(result: Any) -> Any:
    assert isinstance(result, Pair)
    return tuple(bare(each) for each in result.parts)


def _written(node: Node, half: str, given: Any) -> Serde:
    has = node.key if half == "key" else node.value
    found = serde(has) if given is None else _serde_of(has, given)
    if found.type != has:
        raise TypeMismatch(f"to: the {half} is {has}, and cannot be written as {found.type}")
    return found


def _serde_of(has: Any, given: Any) -> Serde:
    """A serde, a type, or the mere name of a format."""
    from ottla.streams.types.serde import FORMATS

    return serde(has, given) if isinstance(given, str) and given in FORMATS else serde(given)
