"""What moves between the groups of a table."""

from typing import Any, NamedTuple

from ottla.streams.types.struct import Field, Struct
from ottla.streams.types.type import Nullable, Type


class Moved(NamedTuple):
    """A value that joins a group, one that leaves it, or both in one."""

    added: Any
    removed: Any


def moved(of: Type) -> Struct:
    """Return the type of what moves, where the table's values are `of`."""
    return Struct(
        (Field("added", Nullable(of), None, False), Field("removed", Nullable(of), None, False)), Moved
    )
