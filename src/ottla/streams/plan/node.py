"""What every operator of a topology has: a name, what flows into it, and the types of what flows out.

N1  A node is frozen, and holds nothing of Spark. What it means is the business of `lowering` alone.
N2  Names are unique within a topology. An operator's state is found again by its name, so who wants to change a
    topology later names the operators that keep state.
N3  What flows out of a stream node are records, out of a table node changes: a change has the new value and the old
    one, and a missing new value is a tombstone.
"""

from dataclasses import dataclass
from typing import ClassVar

from ottla.streams.types.type import Type


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Node:
    """An operator. Two operators are the same only if they are one."""

    # What it is called in a picture, and the stem of the names of those that were given none.
    kind: ClassVar[str] = "node"
    # Whether it remembers anything between records.
    stateful: ClassVar[bool] = False

    name: str
    inputs: "tuple[Node, ...]" = ()
    key: Type
    value: Type

    @property
    def is_table(self) -> bool:
        """Whether changes flow out of it, and not plain records."""
        return isinstance(self, TableNode)

    @property
    def input(self) -> "Node":
        """What flows into an operator that has one input."""
        (only,) = self.inputs
        return only


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StreamNode(Node):
    """An operator out of which records flow."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TableNode(Node):
    """An operator out of which changes of a table flow."""
