"""Progress: how far each broker has followed the metadata log. It lives with the active controller and is not recorded.

G1  A broker leaves the fence once it has applied its own registration.
G2  A broker that stops may go once every active broker has applied the change that took its partitions away: none of
    them sends a request, or a client, to it any more.
G3  What a new controller did not see itself, it assumes to be as far ahead as its log.
"""

from collections.abc import Mapping

from ottla.metadata.image import Image
from ottla.metadata.registration import Broker


class Progress:
    """Offsets that brokers have reached, and those that they have to reach."""

    __slots__ = ("_applied", "_leaving", "_node_id", "_registered", "_start_offset")

    def __init__(self, node_id: int, image: Image) -> None:
        self._node_id = node_id
        self._start_offset = image.offset
        self._applied: dict[int, int] = {}
        self._registered: dict[int, int] = {}
        self._leaving: dict[int, int] = {}

    def registered(self, broker_id: int, offset: int) -> None:
        """Note where a broker's registration stands in the log."""
        self._registered[broker_id] = offset

    def has_heard(self, broker_id: int) -> bool:
        """Whether a broker has spoken to this controller."""
        return broker_id in self._applied

    def applied(self, broker_id: int, offset: int) -> None:
        """Note how far a broker says it is."""
        self._applied[broker_id] = offset

    def leaving(self, broker_id: int, offset: int) -> None:
        """Note where the records end with which a broker gave its partitions up."""
        self._leaving[broker_id] = offset

    def remove(self, broker_id: int) -> None:
        """Forget a broker."""
        for known in (self._applied, self._registered, self._leaving):
            known.pop(broker_id, None)

    def is_caught_up(self, broker_id: int, offset: int) -> bool:
        """True when a broker at `offset` has applied its own registration."""
        return offset >= self._registered.get(broker_id, self._start_offset)

    def may_leave(self, broker_id: int, brokers: Mapping[int, Broker]) -> bool:
        """True once every active broker has heard that this one leads nothing.

        The controller's own node has: it takes each change over before the answer to it leaves.
        """
        offset = self._leaving.get(broker_id, self._start_offset)
        return all(
            self._applied.get(id, -1) >= offset
            for id, broker in brokers.items()
            if broker.active and id not in {broker_id, self._node_id}
        )
