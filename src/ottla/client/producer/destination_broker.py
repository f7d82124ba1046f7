"""A broker that the sender sends to: its connection, and the produce requests in flight."""

from collections import deque
from typing import TYPE_CHECKING

from ottla.wire.messages.produce import ProduceRequest

if TYPE_CHECKING:
    import asyncio

    from ottla.client.connections import BrokerConnection, ClientConnections
    from ottla.client.producer.in_flight_request import InFlightRequest


class DestinationBroker:
    """The state of the sender for one broker."""

    __slots__ = ("_versions", "blocked_since", "connecting", "connection", "in_flight", "node", "timed_out")

    def __init__(self, node: int) -> None:
        self.node = node
        self.connection: BrokerConnection | None = None
        self.connecting: asyncio.Task[None] | None = None
        self.in_flight: deque[InFlightRequest] = deque()
        # Since when a batch that is ready cannot be sent, or None.
        self.blocked_since: float | None = None
        self.timed_out = False
        self._versions: dict[int | None, int] = {}

    @property
    def is_connected(self) -> bool:
        """Whether a request can be sent now."""
        return (
            self.connection is not None and self.connection.link is not None and self.connection.link.is_open
        )

    def attach(self, connection: "BrokerConnection") -> None:
        """Use a new connection."""
        self.connection = connection
        self.timed_out = False
        self._versions = {}

    def version(self, connections: "ClientConnections", newest: int | None) -> int:
        """Return the version of produce requests. Raises Unsupported if there is none."""
        version = self._versions.get(newest)
        if version is None:
            version = self._versions[newest] = connections.version(self.node, ProduceRequest, newest=newest)
        return version
