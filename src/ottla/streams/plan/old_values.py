"""Which tables must know the value before each change.

Most who read a table keep rows of their own, or want to know nothing but the new value. Then a table of a topic has
nothing to remember: what comes in is what flows out.
"""

from ottla.streams.plan.aggregates import Regroup
from ottla.streams.plan.node import Node
from ottla.streams.plan.tables import Suppress, TableFilter, TableMapValues
from ottla.streams.plan.topology import Plan


def wants_old(plan: Plan) -> frozenset[Node]:
    """Return the operators of whose changes somebody asks what was there before."""
    found: set[Node] = set()
    # Whoever reads an operator stands behind it.
    for node in reversed(plan.nodes):
        for reader in plan.readers(node):
            asks = isinstance(reader, Regroup | TableFilter | Suppress)
            if asks or (isinstance(reader, TableMapValues) and reader in found):
                found.add(node)
    return frozenset(found)
