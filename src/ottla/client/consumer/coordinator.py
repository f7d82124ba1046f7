"""The broker that coordinates a group: found when needed, and found again when it turns out to be another.

C1  It is asked over a connection of its own. A join may be answered minutes later, and answers come in order, so
    records must not wait behind it, nor a heartbeat behind records.
C2  Many who look for it look once.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar

from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError, Closed, Disconnected, TimedOut, Unsupported
from ottla.client.joint import begin, join
from ottla.client.links import Links
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message

M = TypeVar("M", bound=Message)

GROUP = 0
# These say that it is another broker, or none for now.
MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class Coordinator:
    """The way to a group's coordinator."""

    def __init__(self, settings: Mapping[str, Any], cluster: Cluster, links: Links) -> None:
        self._cluster = cluster
        self._links = links
        self.group_id: str = settings["group.id"]
        self._node: int | None = None
        self._search: asyncio.Task[int] | None = None

    @property
    def is_known(self) -> bool:
        """Whether it was found, and not lost since."""
        return self._node is not None

    @property
    def node(self) -> int | None:
        """Which broker it is, as far as is known."""
        return self._node

    async def find(self) -> int:
        """Return which broker it is, looking for it as long as it takes; raises what is wrong for good."""
        if self._node is not None:
            return self._node
        if self._search is None:
            self._search = begin(self._look())
        return await join(self._search, lambda: Closed("the consumer is closed"))

    async def _look(self) -> int:
        backoff = self._links.retry_backoff()
        try:
            while True:
                try:
                    found = await self._cluster.coordinator(GROUP, self.group_id)
                    node = self._cluster.node(found)
                    if node is not None:
                        self._links.learn([node])
                        await self._links.connected(found)
                        self._node = found
                        return found
                except ClientError as error:
                    if not error.retriable:
                        raise
                    self._cluster.stale()
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
        """Ask it once; Disconnected or TimedOut also when it cannot be reached, and then it is looked for anew."""
        node = await self.find()
        try:
            return await self._links.ask(node, request, response, timeout_ms=timeout_ms, newest=newest)
        except (Disconnected, TimedOut):
            self.lose(node)
            raise

    async def ask_aside(self, request: Message, response: type[M]) -> M:
        """Ask it, if it is known, past whatever may take its time on the connection that it is usually asked over."""
        if self._node is None:
            raise Disconnected("the coordinator is not known")
        return await self._cluster.links.ask(self._node, request, response)

    def serves(self, request: type[Message], version: int) -> bool:
        """Say whether it knows a version of a request; it must have been found."""
        if self._node is None:
            return False
        try:
            return self._links.version(self._node, request) >= version
        except Unsupported:
            return False

    def lose(self, node: int | None = None) -> None:
        """Have it looked for anew, unless another was found since."""
        if node is None or node == self._node:
            self._node = None

    def heed(self, code: int) -> None:
        """Take note of an error that says it is another broker now."""
        if code in MOVED:
            self._node = None

    async def close(self) -> None:
        """Leave no task and no connection behind."""
        if self._search is not None:
            self._search.cancel()
            with suppress(asyncio.CancelledError, ClientError):
                await self._search
        self._links.close()
