"""Several streams gathered into one aggregate: the adder of the input that a record came by adds it.

What is kept and given out is as for one stream, so the operators of `aggregate.py` and `windowed.py` do it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.streams.lowering.context import Context
    from ottla.streams.lowering.stateful.stage import Stage
    from ottla.streams.plan.aggregates import Cogroup


def cogroup_stages(node: "Cogroup", context: "Context") -> "list[Stage]":
    """Return a cogroup, with windows or without."""
    from ottla.streams.lowering.stateful.aggregate import aggregate_stages
    from ottla.streams.lowering.stateful.windowed import windowed_stages

    return (aggregate_stages if node.window is None else windowed_stages)(node, context)
