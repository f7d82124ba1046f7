"""The census: which partitions lie on a broker, and which ones want for something.

N1  It says nothing that the image does not: it is that image, looked at from the other side.
N2  A change costs what it changes. Leaders and in-sync replicas come and go without touching the lists of brokers, for
    those follow the replicas, which seldom move.
N3  Everything is listed in the order in which it came, so that equal histories give equal decisions.

A broker is in sync, eligible, or leader only where it has a replica, so that one list a broker answers for all three:
the loss of one broker of a hundred costs a hundredth of the partitions and their replicas, not the whole.
"""

from collections.abc import Collection, Iterator, Mapping

from ottla.metadata.delta import Delta
from ottla.metadata.image import Image
from ottla.metadata.topics import NO_LEADER, PartitionState, Topic

Place = tuple[bytes, int]  # a topic's id, and the index of a partition in it
_NOWHERE: Mapping[Place, None] = {}


class Census:
    """Partitions by broker, and those without a leader, with another than the preferred one, or on the move."""

    __slots__ = ("_by_broker", "imbalanced", "leaderless", "moving")

    def __init__(self, image: Image) -> None:
        self._by_broker: dict[int, dict[Place, None]] = {}
        self.leaderless: dict[Place, None] = {}
        self.imbalanced: dict[Place, None] = {}
        self.moving: dict[Place, None] = {}
        for topic in image.topics.by_id.values():
            for index, state in topic.partitions.items():
                self._note((topic.id, index), None, state)

    def on(self, broker: int) -> Collection[Place]:
        """Every partition that has a replica on this broker."""
        return self._by_broker.get(broker, _NOWHERE)

    def follow(self, delta: Delta) -> None:
        """Take a step from one image to the next."""
        for topic in delta.removed_topics.values():
            for index, state in topic.partitions.items():
                self._note((topic.id, index), state, None)
        for change in delta.topics.values():
            before: Mapping[int, PartitionState] = {} if change.before is None else change.before.partitions
            for index, state in change.partitions.items():
                self._note((change.id, index), before.get(index), state)

    def _note(self, place: Place, before: PartitionState | None, after: PartitionState | None) -> None:
        old = () if before is None else before.replicas
        new = () if after is None else after.replicas
        if old != new:
            for broker in old:
                if broker not in new:
                    left = self._by_broker[broker]
                    del left[place]
                    if not left:
                        del self._by_broker[broker]
            for broker in new:
                if broker not in old:
                    self._by_broker.setdefault(broker, {})[place] = None
        _list(self.leaderless, place, after is not None and after.leader == NO_LEADER)
        _list(self.imbalanced, place, after is not None and after.leader != after.replicas[0])
        _list(self.moving, place, after is not None and after.reassigning)


def partitions_of(image: Image, places: Collection[Place]) -> Iterator[tuple[Topic, int, PartitionState]]:
    """The topics and states behind the places."""
    by_id = image.topics.by_id
    for id, index in places:
        topic = by_id[id]
        yield topic, index, topic.partitions[index]


def _list(places: dict[Place, None], place: Place, wanted: bool) -> None:
    if wanted:
        places[place] = None
    else:
        places.pop(place, None)
