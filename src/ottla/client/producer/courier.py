"""The way to one broker: its connection, and the produce requests it has not answered."""

from collections import deque
from typing import TYPE_CHECKING

from ottla.wire.messages.produce import ProduceRequest

if TYPE_CHECKING:
    import asyncio

    from ottla.client.links import Links, Peer
    from ottla.client.producer.parcel import Parcel


class Courier:
    """What there is between the sender and one broker."""

    __slots__ = ("_versions", "connecting", "in_flight", "node", "peer", "stuck_since", "timed_out")

    def __init__(self, node: int) -> None:
        self.node = node
        self.peer: Peer | None = None
        self.connecting: asyncio.Task[None] | None = None
        self.in_flight: deque[Parcel] = deque()
        # Since when there has been something to send that could not be, or None.
        self.stuck_since: float | None = None
        self.timed_out = False
        self._versions: dict[int | None, int] = {}

    @property
    def is_connected(self) -> bool:
        """Whether a request would leave."""
        return self.peer is not None and self.peer.link is not None and self.peer.link.is_open

    def meet(self, peer: "Peer") -> None:
        """Begin with a connection that was made."""
        self.peer = peer
        self.timed_out = False
        self._versions = {}

    def version(self, links: "Links", newest: int | None) -> int:
        """Return the version to produce in; Unsupported when there is none."""
        version = self._versions.get(newest)
        if version is None:
            version = self._versions[newest] = links.version(self.node, ProduceRequest, newest=newest)
        return version
