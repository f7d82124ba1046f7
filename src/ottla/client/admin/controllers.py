"""The controllers of a cluster, for requests without a broker.

C1  Requests go to the active controller once it is known. The others only answer that they are not active.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from ottla.client.cluster import Cluster
from ottla.client.connections import ClientConnections, Node
from ottla.client.errors import ClientError, refused
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

M = TypeVar("M", bound=Message)

CONTROLLER_ENDPOINT = 2


class Controllers(Cluster):
    """A cluster behind `bootstrap.controllers`. It has no topics: only brokers know those."""

    def __init__(self, settings: Mapping[str, Any], connections: ClientConnections) -> None:
        super().__init__({**settings, "bootstrap.servers": settings["bootstrap.controllers"]}, connections)

    async def _ask_metadata(self, names: Iterable[str], auto_create: bool | None) -> None:
        request = DescribeClusterRequest(endpoint_type=CONTROLLER_ENDPOINT)
        answer = await self.ask_fastest(request, DescribeClusterResponse)
        if answer.error_code:
            raise refused(answer.error_code, answer.error_message, about="the controllers")
        self._refreshed_at = self._now()
        self.id, self.controller = answer.cluster_id, answer.controller_id
        self.connections.learn(
            [Node(each.broker_id, each.host, each.port, each.rack) for each in answer.brokers]
        )
        self._changed()

    async def ask_any(self, request: Message, response: type[M], *, timeout_ms: float | None = None) -> M:
        """Ask the active controller; when it cannot be reached, or is not active any more, find the next one."""
        if self.node(self.controller) is None:
            return await super().ask_any(request, response, timeout_ms=timeout_ms)
        try:
            answer = await self.connections.ask(self.controller, request, response, timeout_ms=timeout_ms)
        except ClientError as error:
            if error.retriable:
                self.request_refresh()
            raise
        if getattr(answer, "error_code", 0) == ErrorCode.NOT_CONTROLLER:
            self.request_refresh()
        return answer
