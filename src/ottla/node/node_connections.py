"""The connections of a node, in two groups that share no limit: those of clients and brokers, and those of the quorum.

So no flood of clients, and none of their unread answers, keeps the controllers from each other, as in Kafka, where a
controller has a socket server of its own.

Together they leave descriptors for everything else: connections are at most `RLIMIT_NOFILE` less a reserve, and the
controllers' group has a part of these to itself. Without that, a flood of connections would leave none for the logs
and for the quorum, and their writes would fail.
"""

import asyncio
import contextlib
from collections.abc import Callable

from ottla.broker.session import Session
from ottla.channel.connection import Connection, Serve
from ottla.channel.connections import BUDGET_BYTES, Connections
from ottla.channel.swift import SwiftConnection
from ottla.metadata.settings.definition import INT_MAX
from ottla.metadata.settings.layers import BrokerValues
from ottla.node.settings import Settings
from ottla.node.world import World
from ottla.partition.partition import Flusher

_PATIENCE_S = 1.0
_FAREWELL_S = 0.3

RESERVE_MIN = 128
"""Descriptors that no connection gets, at least, where there are twice as many. A node without topics has 17 open. The
others are for segments in use with their indexes (other logs close theirs when descriptors run short), the quorum's
log, state and snapshots, checkpoints, sockets to other nodes, the 16 readers of metrics, and connections that are
accepted and not refused yet (`socket.listen.backlog.size` of a listener)."""
_RESERVE_PART = 4  # a node with more descriptors has more partitions, too: it keeps back one in four
_CONTROLLERS_PART = 8
_FEW = 4096  # descriptors


class NodeConnections:
    """Both groups, with the limits that the settings give them."""

    def __init__(self, settings: Settings, values: BrokerValues, world: World) -> None:
        self._settings = settings
        self.clients = _connections(values, world)
        self.controllers = _connections(values, world)
        descriptors_max = world.network.descriptors_max()
        self._limit_by_descriptors(descriptors_max)
        self._descriptors_max = descriptors_max
        self._fit_files = world.disk.limit_open(self.files_max)
        self.limit(values)
        asked = values["max.connections"]
        allowed = self.clients.open_max if settings.is_broker else self.controllers.open_max
        # Kafka's default stands for no limit. Who left it hears of this only where descriptors are few.
        if asked > allowed and (asked != INT_MAX or descriptors_max < _FEW):
            world.report(
                f"max.connections is {asked}, but {descriptors_max} descriptors allow {allowed} connections: more are "
                "refused, so that descriptors are left for files; hint: raise the limit of open files (ulimit -Hn)"
            )

    def _limit_by_descriptors(self, descriptors_max: int) -> None:
        """Divide the descriptors that connections may have between the groups of those listeners that there are."""
        connections_max = connections_within(descriptors_max)
        has_clients, has_controllers = self._settings.is_broker, self._settings.is_controller
        of_controllers = connections_max // (_CONTROLLERS_PART if has_clients else 1)
        self.controllers.open_max = of_controllers
        self.clients.open_max = connections_max - (of_controllers if has_controllers else 0)

    def limit(self, values: BrokerValues) -> None:
        """Set the limits on their number: of each group, of an address, of a listener (law A1 of `connections.py`)."""
        settings = self._settings
        per_listener = {}
        for endpoint in settings.listeners:
            name = f"listener.name.{endpoint.name.lower()}.max.connections"
            if name in values:
                per_listener[endpoint.name] = values[name]
        for connections in (self.clients, self.controllers):
            connections.total_max = values["max.connections"]
            connections.per_address_max = values["max.connections.per.ip"]
            connections.per_listener_max = per_listener
        own_listener = len(settings.broker_listeners) > 1
        self.clients.protected = settings.inter_broker_name if own_listener else None

    def accept(self, listener: str, serve: Serve) -> Callable[[], Connection]:
        """Return what makes a connection of a listener."""
        connections = self.controllers if listener in self._settings.controller_names else self.clients

        def accept() -> Connection:
            self._fit_files()
            connection = SwiftConnection(connections, listener, serve)
            connection.session = Session(listener)
            return connection

        return accept

    def close_idle(self, ticks_max: int) -> None:
        """Close whoever sent nothing for so many ticks."""
        self.clients.close_idle(ticks_max)
        self.controllers.close_idle(ticks_max)

    async def hang_up(self, flusher: Flusher) -> None:
        """Take no more requests, answer those that wait for the disk, and close every connection."""
        for connection in self.open:
            connection.stall()
        idle = asyncio.Event()
        flusher.when_idle(idle.set)
        await _patiently(idle, _PATIENCE_S)
        gone = asyncio.Event()

        def emptied() -> None:
            if not self.open:
                gone.set()

        self.clients.on_empty = self.controllers.on_empty = emptied
        for connection in self.open:
            connection.hang_up()
        if self.open:
            await _patiently(gone, _FAREWELL_S)
        for connection in self.open:
            connection.close()

    def files_max(self) -> int:
        """Return how many files may be open: half the reserve, and the descriptors that connections do not use."""
        connections = len(self.clients.open) + len(self.controllers.open)
        return max(1, self._descriptors_max - connections - _reserve(self._descriptors_max) // 2)

    @property
    def open(self) -> list[Connection]:
        """Every connection, of either group."""
        return [*self.clients.open, *self.controllers.open]


def connections_within(descriptors_max: int) -> int:
    """Return how many connections a node may have, so that enough descriptors are left for everything else."""
    return descriptors_max - _reserve(descriptors_max)


def _reserve(descriptors_max: int) -> int:
    return min(max(RESERVE_MIN, descriptors_max // _RESERVE_PART), descriptors_max // 2)


def _connections(values: BrokerValues, world: World) -> Connections:
    request_bytes_max = values["queued.max.request.bytes"]
    return Connections(
        frame_bytes_max=values["socket.request.max.bytes"],
        total_max=values["max.connections"],
        per_address_max=values["max.connections.per.ip"],
        call_soon=world.timers.call_soon,
        pusher=world.network.pusher,
        answer_bytes_max=values["ottla.answer.bytes.max"],
        request_bytes_max=request_bytes_max if request_bytes_max > 0 else BUDGET_BYTES,  # Kafka has no limit then
        call_later=world.timers.call_later,
    )


async def _patiently(event: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
