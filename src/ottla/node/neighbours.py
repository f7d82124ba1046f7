"""The other nodes of the cluster: where they are, and every way to them.

- `wires` between the replicas of the metadata log;
- `line` to the active controller;
- `fetchers` of the leaders that this broker follows, and proposals of who is in sync with those that it leads;
- `peer`, for what one broker asks another: markers of transactions, and whether a partition is part of one.

E1  Every connection is made when there is something to ask, to where the metadata says at that moment.
E2  A voter that does not answer may have died, and the broker in its process with it: the active controller is told,
    and somebody goes to see (`knock.py`).
E3  What a coordinator knows goes with the leadership of its partition.
E4  Nobody waits for the answer of a controller that leads no more: heartbeats, proposals and what clients have asked
    go to the next one at once.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ottla.broker.broker import Broker
from ottla.broker.controller_face import CONTROLLER_TABLE
from ottla.broker.controller_line import Line
from ottla.broker.following import Fetchers
from ottla.broker.internal_topics import OFFSETS, SHARE_STATE, TRANSACTIONS
from ottla.broker.proposing import Proposals
from ottla.channel.peers import Address, Peer
from ottla.node.knock import Knocking
from ottla.node.settings import Settings
from ottla.node.wires import QuorumWires
from ottla.node.world import World
from ottla.partition.partition import Partition
from ottla.replicated.host import nobody


class Neighbours:
    """The ways of one node to the others. `values` are the settings in force."""

    def __init__(self, settings: Settings, world: World, values: Callable[[], Mapping[str, Any]]) -> None:
        self._settings = settings
        self._world = world
        self._values = values
        self._controllers: dict[int, Peer] = {}
        self._brokers: dict[int, Peer] = {}
        self._last_controller = -1
        self._broker: Broker
        self.line: Line
        self.fetchers: Fetchers
        patience_s = values()["controller.quorum.request.timeout.ms"] / 1000
        self.wires = QuorumWires(lambda address: self._make(lambda: address, patience_s), self._missed)
        self._knocking = Knocking(
            world.network, self._broker_address, lambda node_id: self._gone(node_id, refused=True)
        )

    def connect(self, broker: Broker) -> None:
        """Let a broker and its partitions use these ways."""
        self._broker = broker
        roles = broker.table.roles
        assert roles is not None, "a node has roles to give"
        node_id, timers = self._settings.node_id, self._world.timers
        broker.peer = self.peer
        broker.contacts.on_closed = self._visit
        broker.forwardable = {api.key: api for api in CONTROLLER_TABLE}
        self.line = broker.line = Line(broker, broker.forwardable, self._controller)
        self.fetchers = Fetchers(
            node_id,
            lambda: broker.epoch,
            self._leader,
            timers,
            self._values,
            self._world.report,
            roles.throttles.taking,
            broker.searcher,
        )
        broker.is_lost = self.fetchers.is_lost
        roles.attach(self.fetchers, Proposals(node_id, lambda: broker.epoch, self.line, timers, roles))
        roles.on_lost, roles.on_led = self._lost, self._led

    def close(self) -> None:
        """Ask nobody any more."""
        self._knocking.close()
        self.fetchers.close()
        self.wires.close()
        for peer in (*self._controllers.values(), *self._brokers.values()):
            peer.close()

    # Ways

    def peer(self, node_id: int) -> Peer:
        """The way to another broker."""
        if node_id not in self._brokers:
            self._brokers[node_id] = self._leader(node_id)
        return self._brokers[node_id]

    def _leader(self, node_id: int) -> Peer:
        return self._make(
            lambda: self._broker_address(node_id), self._values()["replica.socket.timeout.ms"] / 1000
        )

    def _controller(self, node_id: int) -> Peer:
        if node_id not in self._controllers:
            self._controllers[node_id] = self._make(
                lambda: self._controller_address(node_id), self._values()["request.timeout.ms"] / 1000
            )
        return self._controllers[node_id]

    def _make(self, address: Callable[[], Address | None], timeout_s: float) -> Peer:
        return Peer(
            self._world.network,
            self._world.timers,
            address,
            f"node-{self._settings.node_id}",
            timeout_s=timeout_s,
        )

    def _controller_address(self, node_id: int) -> Address | None:
        """Where a controller listens: as the voters say, or as it has registered."""
        names, quorum = self._settings.controller_names, self._broker.quorum
        for address in quorum.voters.addresses_of(node_id):
            if address.listener in names:
                return Address(address.host, address.port)
        known = quorum.image.controllers.get(node_id)
        if known is not None:
            for name in names:
                endpoint = known.listeners.get(name)
                if endpoint is not None:
                    return Address(endpoint.host, endpoint.port)
        return None

    def _broker_address(self, node_id: int) -> Address | None:
        """Where a broker listens for other brokers."""
        known = self._broker.image.brokers.get(node_id)
        endpoint = None if known is None else known.listeners.get(self._settings.inter_broker_name)
        return None if endpoint is None else Address(endpoint.host, endpoint.port)

    # News

    def took_over(self) -> None:
        """Somebody leads, or nobody. If it is this node, the last leader may be the first broker to be missed."""
        quorum = self._broker.quorum
        for node_id, peer in self._controllers.items():
            if node_id != quorum.leader_id:
                # It may never answer: a node that is stopped in its tracks keeps its connections (E4).
                peer.hang_up("it is not the active controller any more")
        last = self._last_controller
        if quorum.leader_id >= 0:
            self._last_controller = quorum.leader_id
        if quorum.is_active:
            if last != self._settings.node_id:
                quorum.submit(lambda controller, now: controller.broker_doubted(last, now), nobody)
            for node_id in tuple(self.wires.gone):
                self._missed(node_id)

    def _missed(self, node_id: int) -> None:
        self._gone(node_id, refused=False)
        self._visit(node_id)

    def _visit(self, node_id: int) -> None:
        if self._broker.quorum.is_active and node_id in self._broker.alive:
            self._knocking.visit(node_id)

    def _gone(self, node_id: int, *, refused: bool) -> None:
        quorum = self._broker.quorum
        known = quorum.image.brokers.get(node_id)
        if known is not None and quorum.is_active:
            epoch = known.epoch
            quorum.submit(
                lambda controller, now: controller.broker_disconnected(node_id, epoch, now, refused=refused),
                nobody,
            )

    def _led(self, partition: Partition) -> None:
        """What was under way in a partition that another has led goes on here."""
        coordinators = self._coordinators(partition)
        if coordinators is not None:
            self._world.timers.call_soon(lambda: coordinators.load_one([partition.index]))

    def _lost(self, partition: Partition) -> None:
        """Another broker leads a partition now: what its coordinator knew here is worth nothing."""
        coordinators = self._coordinators(partition)
        if coordinators is not None:
            coordinators.lose(partition.index)

    def _coordinators(self, partition: Partition) -> Any:
        broker = self._broker
        hosted = {
            OFFSETS.name: broker.coordination.groups,
            TRANSACTIONS.name: broker.transactions.machines,
            SHARE_STATE.name: broker.share.states.machines,
        }
        return hosted.get(partition.topic)
