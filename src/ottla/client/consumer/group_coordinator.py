"""The coordinator of a consumer group: it is looked up when needed, and again after it has moved.

C1  Requests to it use a separate connection. A join may take minutes, and answers come in order, so fetches must not
    wait behind it, nor heartbeats behind fetches.
C2  Concurrent look-ups share one request.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar

from ottla.client.cluster import Cluster
from ottla.client.connections import ClientConnections
from ottla.client.errors import ClientError, Closed, Disconnected, TimedOut, Unsupported
from ottla.client.shared_task import start_shared, wait_shared
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message

M = TypeVar("M", bound=Message)

GROUP = 0
# Errors that mean that another broker is the coordinator, or none.
MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class GroupCoordinator:
    """Looks up the coordinator of a group, and sends requests to it."""

    def __init__(self, settings: Mapping[str, Any], cluster: Cluster, connections: ClientConnections) -> None:
        self._cluster = cluster
        self._connections = connections
        self.group_id: str = settings["group.id"]
        self._node: int | None = None
        self._search: asyncio.Task[int] | None = None

    @property
    def is_known(self) -> bool:
        """Whether the coordinator is known."""
        return self._node is not None

    @property
    def node(self) -> int | None:
        """The id of the broker, or None if it is not known."""
        return self._node

    async def find(self) -> int:
        """Return the id of the broker. Looks it up if necessary, with retries. Raises errors that are not retriable."""
        if self._node is not None:
            return self._node
        if self._search is None:
            self._search = start_shared(self._look())
        return await wait_shared(self._search, lambda: Closed("the consumer is closed"))

    async def _look(self) -> int:
        backoff = self._connections.retry_backoff()
        try:
            while True:
                try:
                    found = await self._cluster.coordinator(GROUP, self.group_id)
                    node = self._cluster.node(found)
                    if node is not None:
                        self._connections.learn([node])
                        await self._connections.connected(found)
                        self._node = found
                        return found
                except ClientError as error:
                    if not error.retriable:
                        raise
                    self._cluster.request_refresh()
                await asyncio.sleep(backoff.failed())
        finally:
            self._search = None

    async def ask(
        self,
        request: Message,
        response: type[M],
        *,
        timeout_ms: float | None = None,
        newest: int | None = None,
    ) -> M:
        """Send a request once. After Disconnected or TimedOut the coordinator is looked up again."""
        node = await self.find()
        try:
            return await self._connections.ask(node, request, response, timeout_ms=timeout_ms, newest=newest)
        except (Disconnected, TimedOut):
            self.mark_unknown(node)
            raise

    async def ask_on_shared_connection(self, request: Message, response: type[M]) -> M:
        """Send a request over the shared connection, where it does not wait behind a join."""
        if self._node is None:
            raise Disconnected("the coordinator is not known")
        return await self._cluster.connections.ask(self._node, request, response)

    def serves(self, request: type[Message], version: int) -> bool:
        """Return whether the coordinator serves a version of a request. It must be known."""
        if self._node is None:
            return False
        try:
            return self._connections.version(self._node, request) >= version
        except Unsupported:
            return False

    def mark_unknown(self, node: int | None = None) -> None:
        """Look the coordinator up again, unless another one was found since."""
        if node is None or node == self._node:
            self._node = None

    def handle_error(self, code: int) -> None:
        """Handle an error that means that the coordinator has moved."""
        if code in MOVED:
            self._node = None

    async def close(self) -> None:
        """Stop the task and close the connection."""
        if self._search is not None:
            self._search.cancel()
            with suppress(asyncio.CancelledError, ClientError):
                await self._search
        self._connections.close()
