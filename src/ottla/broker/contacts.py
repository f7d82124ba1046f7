"""Contacts: on which connection each broker speaks to the controller here.

A broker whose connection closes is probably gone, and the controller hears of it at once. A broker that has moved to a
new connection is not: only the last one it was heard on counts.
"""

from typing import TYPE_CHECKING, Any

from ottla.replicated.host import nobody

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.channel.connection import Connection
    from ottla.controller.controller import Controller


class Contacts:
    """The brokers that are heard here; `submit` leads to the controller."""

    __slots__ = ("_connections", "_submit", "_watched", "on_closed")

    def __init__(self, submit: "Callable[..., Any]") -> None:
        self._submit = submit
        self._connections: dict[int, tuple[Connection, int]] = {}
        # Of which brokers the close of a connection, here by its identity, is news.
        self._watched: dict[int, tuple[Connection, set[int]]] = {}
        self.on_closed: Callable[[int], object] = lambda broker_id: None

    def heard(self, broker_id: int, broker_epoch: int, connection: "Connection") -> None:
        """Note that an incarnation of a broker was heard on a connection."""
        self._connections[broker_id] = (connection, broker_epoch)
        watched = self._watched.get(id(connection))
        if watched is None:
            watched = self._watched[id(connection)] = (connection, set())
            connection.on_close.append(lambda: self._all_closed(connection))
        watched[1].add(broker_id)

    def _all_closed(self, connection: "Connection") -> None:
        _, broker_ids = self._watched.pop(id(connection))
        for broker_id in sorted(broker_ids):
            self._closed(broker_id, connection)

    def _closed(self, broker_id: int, connection: "Connection") -> None:
        known = self._connections.get(broker_id)
        if known is None or known[0] is not connection:
            return
        del self._connections[broker_id]
        broker_epoch = known[1]

        def decide(controller: "Controller", now: int) -> Any:
            return controller.broker_disconnected(broker_id, broker_epoch, now)

        self._submit(decide, nobody)
        self.on_closed(broker_id)
