"""All paths of one record from its origin, as Columns: one pass of Spark's own, where Python need not be called.

Each operator adds columns beside those of the one that it reads: whether the record comes there, its key and its value.
At the end the rows of all ends that it came to stand in one array, depth first, and the array is laid out (`explode`).
So rows leave in the order of `fan_out.py`, and nothing is computed twice.

Operators that make several records of one, and tables', are left to Python.
"""

from itertools import count

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from ottla.streams.computing import called_because
from ottla.streams.lowering.columns import computed, once
from ottla.streams.lowering.emission import TAIL
from ottla.streams.lowering.flow import End, Flow, Reader
from ottla.streams.lowering.reading import letter_columns
from ottla.streams.lowering.stateless import halves, kept, taken
from ottla.streams.lowering.writing import row_columns
from ottla.streams.plan.node import Node
from ottla.streams.plan.sinks import To
from ottla.streams.plan.stateless import Branch, Filter, Map, MapValues, Merge, Repartition, SelectKey

_TRACED = (Branch, Filter, Map, MapValues, SelectKey)
_THROUGH = (Merge, Repartition)


def are_columns_enough(flow: Flow, node: Node) -> bool:
    """Whether Columns can do all that is on the paths from a node."""
    return not node.is_table and all(_is_plain(flow, each) for each in flow.readers(node))


def _is_plain(flow: Flow, reader: Reader) -> bool:
    if isinstance(reader, End):
        node = reader.node
        return not isinstance(node, To) or called_because(node) is None
    if not isinstance(reader, Node) or not isinstance(reader, (*_TRACED, *_THROUGH)):
        return False
    is_traced = isinstance(reader, _THROUGH) or called_because(reader) is None
    return is_traced and are_columns_enough(flow, reader)


def column_fan_out(
    flow: Flow, node: Node, frame: DataFrame, rows: StructType, letters: tuple[int, str] | None = None
) -> DataFrame:
    """Return the rows of all ends that the records of a node come to.

    With `letters`, an output and a topic, the frame is what `decode` gave, and what cannot be read goes there.
    """
    found = _RowColumns(flow, frame, rows)
    there = F.lit(True)
    if letters is not None:
        found.frame = frame.withColumns({name: once(F.col(name)) for name in ("key", "value")})
        there = F.col("reason").isNull()
        bad = {"output": F.lit(letters[0]), **letter_columns(letters[1])}
        found.rows.append(F.when(~there, found.row(bad)))
    found.out_of(node, there, {"key": F.col("key"), "value": F.col("value")})
    laid_out = found.frame.select(F.explode(F.array_compact(F.array(*found.rows))).alias("row"))
    return laid_out.select("row.*")


class _RowColumns:
    """A frame that grows by columns."""

    def __init__(self, flow: Flow, frame: DataFrame, rows: StructType) -> None:
        self.frame = frame
        self.rows: list[Column] = []
        self._flow = flow
        self._schema = rows
        self._numbers = count()

    def out_of(self, node: Node, there: Column, given: dict[str, Column]) -> None:
        """Go all paths from a node."""
        for each in self._flow.readers(node):
            if isinstance(each, End):
                self.rows.append(F.when(there, self._row(each, given)))
            elif isinstance(each, _THROUGH):
                self.out_of(each, there, given)
            else:
                assert isinstance(each, Node)
                self._into(each, there, given)

    def _into(self, node: Node, there: Column, given: dict[str, Column]) -> None:
        number = next(self._numbers)
        made: dict[str, Column] = {}
        if isinstance(node, Filter):
            made["there"] = kept(node, given)
        elif isinstance(node, Branch):
            made["there"] = taken(node, given)
        elif isinstance(node, Map):
            made["key"], made["value"] = halves(node.mapper, given, node.name)
        elif isinstance(node, MapValues):
            made["value"] = computed(node.mapper, given, node.name)
        else:
            assert isinstance(node, SelectKey)
            made["key"] = computed(node.selector, given, node.name)
        names = {name: f"{name}_{number}" for name in made}
        self.frame = self.frame.withColumns({names[name]: once(F.when(there, made[name])) for name in made})
        after = {**given, **{name: F.col(names[name]) for name in made if name != "there"}}
        self.out_of(
            node, F.coalesce(F.col(names["there"]), F.lit(False)) if "there" in made else there, after
        )

    def _row(self, end: End, given: dict[str, Column]) -> Column:
        known = {"output": F.lit(end.number)}
        if isinstance(end.node, To):
            known |= row_columns(end.node, given)
        else:
            known[f"seen_{end.number}"] = F.struct(
                given["key"].alias("key"), given["value"].alias("value"), *TAIL
            )
        return self.row(known)

    def row(self, known: dict[str, Column]) -> Column:
        """Return a row of which some columns are known; the others are null."""
        return F.struct(
            *(
                known.get(each.name, F.lit(None)).cast(each.dataType).alias(each.name)
                for each in self._schema.fields
            )
        )
