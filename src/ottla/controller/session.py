"""Sessions: when each broker was last heard from. They live with the active controller and are not recorded.

S1  A broker that was not heard from for `timeout_ms` is stale; the controller's own node never is: they stop together.
S2  A new controller gives every broker a whole session before it calls it stale.
"""

from collections.abc import Mapping

from ottla.metadata.registration import Broker
from ottla.replicated.decision import Millis


class Sessions:
    """The last contact of every broker, and how far each has followed the log."""

    __slots__ = ("_contact_ms", "_node_id", "_offsets", "_shutdown_offsets", "_timeout_ms")

    def __init__(self, node_id: int, timeout_ms: int) -> None:
        self._node_id = node_id
        self._timeout_ms = timeout_ms
        self._contact_ms: dict[int, Millis] = {}
        self._offsets: dict[int, int] = {}
        self._shutdown_offsets: dict[int, int] = {}

    @property
    def deadline(self) -> Millis | None:
        """When the first session may have run out."""
        return min(self._contact_ms.values()) + self._timeout_ms if self._contact_ms else None

    def touch(self, broker_id: int, now: Millis, offset: int | None = None) -> None:
        """Note that a broker was heard from, and how far it has come."""
        if broker_id != self._node_id:
            self._contact_ms[broker_id] = now
        if offset is not None:
            self._offsets[broker_id] = offset

    def remove(self, broker_id: int) -> None:
        """Forget a broker."""
        for known in (self._contact_ms, self._offsets, self._shutdown_offsets):
            known.pop(broker_id, None)

    def is_live(self, broker_id: int, now: Millis) -> bool:
        """True while a broker's session lasts."""
        contact = self._contact_ms.get(broker_id)
        return contact is not None and now < contact + self._timeout_ms

    def stale(self, now: Millis) -> int | None:
        """A broker whose session ran out, the longest silent first; None when there is none."""
        silent = min(self._contact_ms, key=self._contact_ms.__getitem__, default=None)
        return None if silent is None or self.is_live(silent, now) else silent

    def shutting_down(self, broker_id: int, offset: int) -> None:
        """Note at which offset a broker began its controlled shutdown."""
        self._shutdown_offsets[broker_id] = offset

    def may_shut_down(self, broker_id: int, brokers: Mapping[int, Broker]) -> bool:
        """True once every active broker has seen that this one no longer leads anything."""
        others = [
            self._offsets.get(id, -1) for id, broker in brokers.items() if broker.active and id != broker_id
        ]
        return all(offset >= self._shutdown_offsets.get(broker_id, -1) for offset in others)
