"""Topic names: what Kafka allows, and which would be confused with one another.

Metric names turn dots into underscores, so `a.b` and `a_b` may not both exist.
"""

from collections.abc import Iterable

LENGTH_MAX = 249
CLUSTER_METADATA = "__cluster_metadata"
_LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def invalid_name(name: str) -> str | None:
    """What is wrong with a topic name, as Kafka words it; None when nothing is."""
    if not name:
        reason = "the empty string is not allowed"
    elif name in {".", ".."}:
        reason = f"'{name}' is not allowed"
    elif len(name) > LENGTH_MAX:
        reason = f"the length of '{name}' is longer than the max allowed length {LENGTH_MAX}"
    elif not _LEGAL.issuperset(name):
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    else:
        return None
    return f"Topic name is invalid: {reason}"


class Collisions:
    """Names that hold a dot or an underscore, by what they look like in a metric."""

    __slots__ = ("_alike",)

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._alike: dict[str, dict[str, None]] = {}
        for name in names:
            self.add(name)

    def add(self, name: str) -> None:
        """Remember a topic."""
        if "." in name or "_" in name:
            self._alike.setdefault(name.replace(".", "_"), {})[name] = None

    def remove(self, name: str) -> None:
        """Forget a topic."""
        look = name.replace(".", "_")
        if alike := self._alike.get(look):
            alike.pop(name, None)
            if not alike:
                del self._alike[look]

    def with_name(self, name: str) -> str | None:
        """A topic that looks the same; None when there is none."""
        if "." not in name and "_" not in name:
            return None
        return next(iter(self._alike.get(name.replace(".", "_"), ())), None)
