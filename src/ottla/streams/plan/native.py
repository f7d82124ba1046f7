"""Which topologies Spark's own aggregation can count for (native=True)."""

from collections.abc import Iterable

from ottla.streams.errors import TopologyError
from ottla.streams.plan.aggregates import Aggregate
from ottla.streams.plan.node import Node

HINT = "native=True is for a count without windows that nothing which remembers follows, with updates='last'"


def check_native(nodes: Iterable[Node], updates: str) -> None:
    """TopologyError unless Spark's own aggregation can do all that is to be remembered."""
    stateful = [each for each in nodes if each.stateful]
    counts = [
        each
        for each in stateful
        if isinstance(each, Aggregate) and each.method == "count" and not each.window
    ]
    if len(stateful) != 1 or counts != stateful:
        other = next((each.name for each in stateful if each not in counts), None)
        reason = f"{other} is another operator that remembers" if other else f"there are {len(counts)} counts"
        raise TopologyError(f"native: {reason}", hint=HINT)
    if updates != "last":
        raise TopologyError("native: every change is to be shown (updates='all')", hint=HINT)
