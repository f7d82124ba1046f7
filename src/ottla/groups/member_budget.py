"""How many bytes the classic members of all groups of a broker hold: names, metadata and assignments.

Members are known to this process alone until a generation is recorded, so a peer can have as many as it has groups.

B1  Beyond BYTES_MAX nothing larger than BYTES_FREE is added. What is smaller is always let in: a group with one member
    costs some KB anyway, and honest members bring less than a KB.
B2  What was added is known at once, what has gone only by a count over all groups. The count is made when there seems
    to be no room, and once a second at most: until then the sum is too high, never too low.
"""

import weakref
from collections.abc import Mapping
from typing import Any, Protocol

BYTES_MAX = 256 << 20
BYTES_FREE = 1 << 10
_COUNT_EVERY_MS = 1_000


class Holder(Protocol):
    """The groups of one partition."""

    @property
    def groups(self) -> Mapping[str, Any]:
        """By their ids."""
        ...


class MemberBudget:
    """The bytes of the members of all groups. One for all partitions of a broker."""

    __slots__ = ("_counted_ms", "_held_bytes", "_holders", "bytes_max")

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self.bytes_max = bytes_max
        self._held_bytes = 0
        self._counted_ms: int | None = None
        self._holders: list[weakref.ref[Any]] = []

    def watch(self, holder: Holder) -> None:
        """Count the groups of one more partition, for as long as it is there."""
        self._holders = [each for each in self._holders if each() is not None]
        self._holders.append(weakref.ref(holder))

    def admits(self, size_bytes: int, now: int) -> bool:
        """Say whether there is room for so many bytes more, and count them if there is."""
        if self._held_bytes + size_bytes > self.bytes_max and (
            self._counted_ms is None or now - self._counted_ms >= _COUNT_EVERY_MS
        ):
            self._counted_ms = now
            self._held_bytes = self._count()
        if size_bytes > BYTES_FREE and self._held_bytes + size_bytes > self.bytes_max:
            return False
        self._held_bytes += max(0, size_bytes)
        return True

    def _count(self) -> int:
        holders = [found for each in self._holders if (found := each()) is not None]
        return sum(getattr(group, "held_bytes", 0) for holder in holders for group in holder.groups.values())
