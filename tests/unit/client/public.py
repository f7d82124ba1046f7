"""What of a class is public, as tests compare it."""

import inspect
from collections.abc import Iterator
from typing import Any


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """Return the public methods and properties of a class, without what every object has."""
    for name, member in inspect.getmembers_static(kind):
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
            yield name, member


def function_of(member: Any) -> Any:
    """Return the function behind a property or a wrapper."""
    return inspect.unwrap(member.fget if isinstance(member, property) else member)
