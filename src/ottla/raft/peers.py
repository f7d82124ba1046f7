"""Peers: to whom a request is under way, and to whom the last one failed.

P1  A node has at most one request of ours under way. A follower has at most one fetch under way to anybody, or it
    would fetch the same records twice.
P2  An answer counts only while its request is the one under way: a change of role forgets them all.
"""

from collections.abc import Callable, Sequence

from ottla.raft.settings import Node


class _Connection:
    __slots__ = ("request_id", "until_ms")

    def __init__(self, request_id: int | None, until_ms: int) -> None:
        self.request_id = request_id  # None after a failure, while it waits to try again
        self.until_ms = until_ms


class Peers:
    """The requests of one replica."""

    __slots__ = ("_backoff_ms", "_connections", "_timeout_ms")

    def __init__(self, timeout_ms: int, backoff_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._backoff_ms = backoff_ms
        self._connections: dict[int, _Connection] = {}

    def is_ready(self, node_id: int, now: int) -> bool:
        """True when a request can be sent."""
        connection = self._connections.get(node_id)
        return connection is None or connection.until_ms <= now

    def is_backing_off(self, node_id: int, now: int) -> bool:
        """True when the last request failed a moment ago."""
        connection = self._connections.get(node_id)
        return connection is not None and connection.request_id is None and connection.until_ms > now

    def has_timed_out(self, node_id: int, now: int) -> bool:
        """True when the request under way should have been answered by now."""
        connection = self._connections.get(node_id)
        return connection is not None and connection.request_id is not None and connection.until_ms <= now

    def is_any_under_way(self, now: int) -> bool:
        """True when somebody still owes an answer."""
        return any(
            connection.request_id is not None and connection.until_ms > now
            for connection in self._connections.values()
        )

    def expects(self, node_id: int, request_id: int) -> bool:
        """True when this is the answer that the node owes."""
        connection = self._connections.get(node_id)
        return connection is not None and connection.request_id == request_id

    def sent(self, node_id: int, request_id: int, now: int) -> None:
        """Note that a request is under way."""
        self._connections[node_id] = _Connection(request_id, now + self._timeout_ms)

    def answered(self, node_id: int, request_id: int, now: int, *, well: bool) -> None:
        """Note an answer; after one that did not help, the node is left alone for a moment."""
        if self.expects(node_id, request_id):
            if well:
                del self._connections[node_id]
            else:
                self._connections[node_id] = _Connection(None, now + self._backoff_ms)

    def forget(self, node_id: int) -> None:
        """Forget what is under way to one node."""
        self._connections.pop(node_id, None)

    def forget_all(self) -> None:
        """Forget all that is under way."""
        self._connections.clear()

    def find_ready(self, nodes: Sequence[Node], now: int, draw: Callable[[int], int]) -> Node | None:
        """Any of these nodes to ask who leads; none while somebody owes an answer."""
        count = len(nodes)
        if not count or self.is_any_under_way(now):
            return None
        first = draw(count)
        for index in range(count):
            node = nodes[(first + index) % count]
            if self.is_ready(node.id, now):
                return node
        return None

    def deadline(self, now: int) -> int | None:
        """When the next node becomes ready that is not."""
        return min(
            (each.until_ms for each in self._connections.values() if each.until_ms > now), default=None
        )
