"""The offsets of all groups of a partition, those of open transactions apart: a fold of records and markers.

O1  An offset of a transaction is seen only when the transaction commits, and never when it aborts.
O2  Of two commits the one whose record came later holds, even if it belongs to the transaction that ended first.
O3  A tombstone removes what open transactions hold for its place as well.
"""

from collections.abc import Iterator, Mapping

from ottla.groups.offset_records import Committed, Place

_Topics = dict[str, dict[int, Committed]]
_NOTHING: Mapping[str, Mapping[int, Committed]] = {}


class Ledger:
    """Who has come how far."""

    __slots__ = ("_committed", "_open", "_pending")

    def __init__(self) -> None:
        self._committed: dict[str, _Topics] = {}
        # By producer: what its open transaction holds.
        self._pending: dict[int, dict[Place, Committed]] = {}
        # By group and place: the producers whose transactions hold something for it.
        self._open: dict[str, dict[Place, set[int]]] = {}

    def topics(self, group: str) -> Mapping[str, Mapping[int, Committed]]:
        """Return what a group committed, by topic and partition."""
        return self._committed.get(group, _NOTHING)

    def find(self, place: Place) -> Committed | None:
        """Return the offset committed for a place."""
        return self.topics(place.group).get(place.topic, {}).get(place.partition)

    def groups(self) -> list[str]:
        """Return the groups that committed anything."""
        return list(self._committed)

    def is_open(self, place: Place) -> bool:
        """Whether an open transaction holds something for a place."""
        return place in self._open.get(place.group, ())

    def open_places(self, group: str) -> list[Place]:
        """Return the places of a group for which an open transaction holds something."""
        return list(self._open.get(group, ()))

    def places(self, group: str) -> Iterator[Place]:
        """Return every place of a group, those of open transactions among them, each once."""
        for topic, partitions in self.topics(group).items():
            for partition in partitions:
                yield Place(group, topic, partition)
        for place in self._open.get(group, ()):
            if self.find(place) is None:
                yield place

    def pending(self) -> Iterator[tuple[Place, Committed]]:
        """Return what all open transactions hold."""
        for held in self._pending.values():
            yield from held.items()

    def everything(self) -> Iterator[tuple[Place, Committed]]:
        """Return what all groups committed, and what all open transactions hold."""
        for group, topics in self._committed.items():
            for topic, partitions in topics.items():
                for partition, committed in partitions.items():
                    yield Place(group, topic, partition), committed
        yield from self.pending()

    def put(self, place: Place, committed: Committed) -> None:
        """Take a commit in."""
        topics = self._committed.setdefault(place.group, {})
        topics.setdefault(place.topic, {})[place.partition] = committed

    def hold(self, producer_id: int, place: Place, committed: Committed) -> None:
        """Take in a commit that belongs to a producer's transaction."""
        self._pending.setdefault(producer_id, {})[place] = committed
        self._open.setdefault(place.group, {}).setdefault(place, set()).add(producer_id)

    def remove(self, place: Place) -> None:
        """Forget what was committed for a place, and what is held for it."""
        topics = self._committed.get(place.group)
        if topics is not None and place.topic in topics:
            topics[place.topic].pop(place.partition, None)
            if not topics[place.topic]:
                del topics[place.topic]
            if not topics:
                del self._committed[place.group]
        for producer_id in list(self._open.get(place.group, {}).get(place, ())):
            self._pending.get(producer_id, {}).pop(place, None)
            self._release(producer_id, place)

    def end(self, producer_id: int, *, committed: bool) -> list[Place]:
        """End a producer's transaction; return the places it held something for."""
        held = self._pending.pop(producer_id, {})
        for place, offset in held.items():
            self._release(producer_id, place)
            before = self.find(place)
            if committed and (before is None or offset.at > before.at):
                self.put(place, offset)
        return list(held)

    def _release(self, producer_id: int, place: Place) -> None:
        places = self._open.get(place.group, {})
        holders = places.get(place, set())
        holders.discard(producer_id)
        if not holders:
            places.pop(place, None)
        if not places:
            self._open.pop(place.group, None)
