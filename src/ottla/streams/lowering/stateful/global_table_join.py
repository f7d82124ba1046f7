"""A stream joined with a global table: each record looks up whatever key the selector makes of it.

There is no order in time between the two: a record meets the row as it is when its micro-batch is worked on. A record
without a value is dropped, and so is one for which there is no key to look up, but for a left join. Nothing is
remembered, so this is no operator of Spark's with state: rows are in the memory of the processes that look them up
(`replica.py`).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ottla.streams.errors import FunctionFailed
from ottla.streams.lowering.stateful.plain import values
from ottla.streams.lowering.stateful.replica import Place, Rows, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.streams.lowering.context import Context
    from ottla.streams.plan.joins import GlobalTableJoin as GlobalTableJoinNode


class LookUp:
    """Joins batches of records. `rows` gives the table as it is now; `select` and `join` take and give plain values."""

    def __init__(
        self,
        how: str,
        rows: Callable[[], Rows],
        select: Callable[[Any, Any], Any],
        join: Callable[[Any, Any, Any], Any],
        type: pa.DataType,
    ) -> None:
        self._left = how == "left"
        self._rows = rows
        self._select = select
        self._join = join
        self._type = type
        self._now: Rows | None = None

    def begin(self) -> None:
        """Begin a micro-batch: the table is brought up to date when it is next asked."""
        self._now = None

    def joined(self, key: Any, value: Any) -> tuple[Any] | None:
        """Return what a record becomes, or None where it is dropped."""
        if value is None:
            return None
        if self._now is None:
            self._now = self._rows()
        wanted = self._select(key, value)
        row = None if wanted is None else self._now.find(wanted)
        return (self._join(key, value, row),) if row is not None or self._left else None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Join what comes."""
        self.begin()
        for batch in batches:
            yield self._batch(batch)

    def _batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        taken: list[int] = []
        made: list[Any] = []
        keys, given = values(batch.column("key")), values(batch.column("value"))
        for n, (key, value) in enumerate(zip(keys, given, strict=True)):
            try:
                found = self.joined(key, value)
                if found is not None:
                    made.append(found[0])
                    taken.append(n)
            except FunctionFailed as failed:
                where = (batch.column(name)[n].as_py() for name in ("topic", "partition", "offset"))
                raise failed.located(*where) from failed.__cause__
        kept = batch.take(pa.array(taken, pa.int64()))
        columns = [
            pa.array(made, self._type) if name == "value" else kept.column(name)
            for name in batch.schema.names
        ]
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def lower_global_table_join(
    node: "GlobalTableJoinNode", inputs: "list[DataFrame]", context: "Context"
) -> "DataFrame":
    """Lower a join with a global table."""
    from ottla.streams.lowering.envelope import schema

    return inputs[0].mapInArrow(look_up(node, context), schema(node))


def look_up(node: "GlobalTableJoinNode", context: "Context") -> LookUp:
    """Return what joins records with a global table."""
    from ottla.client.settings.consumer import CONSUMER
    from ottla.streams.lowering.calling import caller, dumper, loader
    from ottla.streams.lowering.datatypes import arrow_type
    from ottla.streams.lowering.stateful.joining import joiner
    from ottla.streams.plan.sources import GlobalTableSource

    stream, table = node.inputs
    assert isinstance(table, GlobalTableSource)
    selected = caller(node.selector, ("key", "value"), node.name)
    load_key, load_value = loader(stream.key), loader(stream.value)
    dump = dumper(table.key, node.name, node.selector.place)

    def select(key: Any, value: Any) -> Any:
        return dump(selected(load_key(key), load_value(value)))

    (topic,) = table.topics
    rows: Callable[[], Rows]
    if context.given is not None:
        made = Rows(topic, table.key_serde, table.value_serde)
        made.take(context.given.get(topic, ()))

        def rows() -> Rows:
            return made

    else:
        settings = tuple(
            sorted((name, value) for name, value in context.client_settings.items() if name in CONSUMER)
        )
        place = Place(topic, context.bootstrap_servers, settings, table.key_serde, table.value_serde)

        def rows() -> Rows:
            return rows_of(place)

    return LookUp(node.how, rows, select, joiner(node, stream.value, table.value), arrow_type(node.value))
