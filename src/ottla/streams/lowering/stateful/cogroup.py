"""Several streams gathered into one aggregate: the adder of the input that a record came by adds it.

What is kept and given out is as for one stream, so the operators of `aggregate.py` and `windowed.py` do it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.streams.lowering.context import Context
    from ottla.streams.plan.aggregates import Cogroup


def lower_cogroup(node: "Cogroup", inputs: "list[DataFrame]", context: "Context") -> "DataFrame":
    """Lower a cogroup, with windows or without."""
    from ottla.streams.lowering.stateful.aggregate import lower_aggregate
    from ottla.streams.lowering.stateful.windowed import lower_windowed

    lower = lower_aggregate if node.window is None else lower_windowed
    return lower(node, inputs, context)
