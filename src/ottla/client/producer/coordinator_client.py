"""Finds coordinators and sends requests to them. Looks them up again when they have moved or cannot be reached."""

import asyncio
from typing import TypeVar

from ottla.client.cluster import Cluster
from ottla.client.errors import Disconnected, Refused, TimedOut
from ottla.wire.message import Message

M = TypeVar("M", bound=Message)

GROUP, TRANSACTION = 0, 1


class CoordinatorClient:
    """The known coordinators of groups and transactional ids."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._nodes: dict[tuple[int, str], int] = {}

    def forget(self, kind: int, key: str) -> None:
        """Look a coordinator up again before the next request."""
        self._nodes.pop((kind, key), None)

    def node(self, kind: int, key: str) -> int | None:
        """Return the broker, or None if it is not known."""
        return self._nodes.get((kind, key))

    async def ask(
        self, kind: int, key: str, request: Message, response: type[M], newest: int | None = None
    ) -> M:
        """Ask until there is an answer. Raises Refused if no coordinator is found, and Unsupported."""
        backoff = self._cluster.connections.retry_backoff()
        while True:
            node = self._nodes.get((kind, key))
            try:
                if node is None:
                    node = self._nodes[kind, key] = await self._cluster.coordinator(kind, key)
                return await self._cluster.connections.ask(node, request, response, newest=newest)
            except (Disconnected, TimedOut):
                self.forget(kind, key)
            except Refused as error:
                if not error.retriable:
                    raise
            await asyncio.sleep(backoff.failed())
