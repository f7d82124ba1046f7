"""A stage: an operator with state as a link of the chain that a query is.

An operator of the plan is one stage, a foreign-key join is three. What a stage reads are nodes of the plan, or the
nodes between the stages of one operator, which no plan has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.streams.plan.node import Node
from ottla.streams.types.type import Type

if TYPE_CHECKING:
    from ottla.streams.lowering.stateful.operator import Operator


@dataclass(frozen=True, eq=False)
class Stage:
    """An operator, what it reads and what flows out of it.

    `keys` are the types of the inputs' keys, `ranks` say which input goes first at equal times. Without `values` only
    records with key and value come in, and the values stay behind. With `olds` the value before each change comes in as
    well.
    """

    node: Node
    inputs: tuple[Node, ...]
    operator: "Operator"
    keys: tuple[Type, ...]
    ranks: tuple[int, ...]
    values: bool = True
    olds: bool = False


def stage(
    node: Node,
    operator: "Operator",
    *,
    inputs: Sequence[Node] = (),
    ranks: Sequence[int] = (),
    values: bool = True,
    olds: bool = False,
) -> Stage:
    """Return the stage of an operator, which reads the inputs of its node unless told otherwise."""
    read = tuple(inputs) or node.inputs
    keys = tuple(each.key for each in read)
    return Stage(node, read, operator, keys, tuple(ranks) or tuple(range(len(read))), values, olds)
