"""How many elements the arrays of one request may hold, all together.

An element takes as little as two bytes of a request, and a hundred times as much once it is an object: 100 MB of them
are gigabytes, and seconds in which nobody else is served. Kafka sets no bound. No client, broker or tool needs as many.

C1  A request with more than ELEMENTS_MAX is refused before the array that goes beyond is made. So is what a consumer
    says of itself inside a request.
C2  Responses have no such bound: what we have asked for is ours to limit. Nor has what we have written ourselves.
"""

from ottla.wire.errors import ProtocolError
from ottla.wire.field import Field
from ottla.wire.message import Message, Struct, fields_of

ELEMENTS_MAX = 1 << 17


def elements_max(cls: type[Message], version: int) -> int | None:
    """Return the bound of a message, or None if it has none."""
    is_bounded = cls.__module__.startswith("ottla.wire.messages.") and not cls.__name__.endswith("Response")
    return ELEMENTS_MAX if is_bounded and _has_array(cls, version) else None


def _has_array(cls: type[Struct], version: int) -> bool:
    return any(_holds_array(field, version) for field in fields_of(cls) if version in field.versions)


def _holds_array(field: Field, version: int) -> bool:
    return field.array or (field.is_struct and _has_array(field.kind, version))


def too_many_elements() -> ProtocolError:
    """The complaint about a request that goes beyond."""
    return ProtocolError(f"more than {ELEMENTS_MAX} elements in the arrays of one message")
