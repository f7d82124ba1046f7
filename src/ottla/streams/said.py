"""What the faces of streams, tables and groups share: an operator, and the topology to say the next one in."""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ottla.streams.errors import TopologyError, TypeMismatch
from ottla.streams.functions import function
from ottla.streams.plan.function import Function
from ottla.streams.plan.node import Node
from ottla.streams.plan.topology import Topology
from ottla.streams.types.build import type_of
from ottla.streams.types.struct import Pair, bare
from ottla.streams.types.type import Type
from ottla.streams.types.walk import as_key

N = TypeVar("N", bound=Node)


class Said:
    """An operator of a topology, with the methods that add the next one."""

    def __init__(self, topology: Topology, node: Node) -> None:
        self._topology = topology
        self._node = node

    @property
    def name(self) -> str:
        """The name of the operator."""
        return self._node.name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._node.name}: {self._node.key} → {self._node.value}>"

    # Names that belong to another object, and what to write instead.
    _elsewhere: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Say what is meant by a name that is not here: Kafka Streams' spelling, or an operator of something
            else.
            """
            message = f"{type(self).__name__} has no {name}"
            if name.startswith("__"):
                raise AttributeError(message)
            snake = re.sub("([A-Z])", lambda letter: f"_{letter[1].lower()}", name)
            public = [each for each in dir(type(self)) if not each.startswith("_")]
            near = [snake] if snake in public else []
            hint = self._elsewhere.get(snake, "")
            near = near or ([] if hint else get_close_matches(snake, public, n=1))
            if near:
                hint = f"did you mean {near[0]}?"
            error = AttributeError(f"{message}\nhint: {hint}" if hint else message, name=name, obj=None)
            raise error

    @property
    def _offered(self) -> dict[str, Type]:
        return {"key": self._node.key, "value": self._node.value}

    def _add(self, make: type[N], name: str | None, **fields: Any) -> N:
        """Add an operator that reads this one, unless its inputs are given."""
        fields.setdefault("inputs", (self._node,))
        fields.setdefault("key", self._node.key)
        fields.setdefault("value", self._node.value)
        fields["key"] = as_key(fields["key"])
        return self._topology.add(make(name=self._topology.name(make.kind, name), **fields))

    def _pairing(
        self, mapper: Callable[..., Any], what: str, key: Any, value: Any, *, many: bool = False
    ) -> Function:
        """A user's function that returns a key and a value, or many of them."""
        wanted: Type | None = None
        if key is not None and value is not None:
            wanted = Pair((bare(type_of(key)), bare(type_of(value))))
        elif key is not None or value is not None:
            raise TopologyError(f"{what}: give the types of both, key= and value=, or of none")
        found = function(mapper, self._offered, what, wanted, many=many)
        if not isinstance(found.result, Pair) or len(found.result.parts) != 2:
            raise TypeMismatch(
                f"{what}: the function at {found.place} returns {found.result}, not a key and a value"
            )
        return found

    def _same_app(self, other: "Said", what: str) -> None:
        if other._topology is not self._topology:
            raise TopologyError(f"{what}: {other.name} is of another app")


def given_type(given: Any) -> Type | None:
    """Return the type that a user gave for a key or a value, which may always be null; None where none was given."""
    return None if given is None else bare(type_of(given))
