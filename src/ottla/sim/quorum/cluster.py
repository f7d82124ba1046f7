"""A cluster of simulated nodes, and everything that happens to it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from ottla.raft.event import Event, ShutDown
from ottla.raft.ready import Ready, Reply, Send
from ottla.raft.settings import Node, RaftSettings
from ottla.raft.snapshot import BOOTSTRAP_ID
from ottla.raft.voters import NO_VOTERS, Address, Voter, Voters
from ottla.sim.checkers.checker import Checker
from ottla.sim.network import Network
from ottla.sim.quorum.disk import QuorumDisk
from ottla.sim.quorum.history import History
from ottla.sim.quorum.log import Entry
from ottla.sim.quorum.node import Call, SimNode
from ottla.sim.quorum.snapshot import Content, write_snapshot
from ottla.sim.schedule import Schedule
from ottla.sim.violation import Stuck
from ottla.wire.message import Message
from ottla.world.entropy import Entropy, SeededEntropy

CLUSTER_ID = "simulated-cluster-id-x"
LISTENER = "CONTROLLER"
CLIENT = -1
START_MS = 1_000_000


class Cluster:
    """Nodes, the network between them, and whoever watches."""

    def __init__(self, seed: int, checkers: Sequence[Checker]) -> None:
        self._seed = seed
        self.schedule = Schedule(START_MS)
        self.network = Network(self.schedule, SeededEntropy(seed * 7 + 1))
        self.disk_entropy: Entropy = SeededEntropy(seed * 7 + 2)
        self._entropies: dict[int, SeededEntropy] = {}
        self.nodes: dict[int, SimNode] = {}
        self.by_port: dict[int, SimNode] = {}
        self.tears = False
        self.is_encoded = False  # messages pass through their bytes
        self.is_dynamic = True
        self.steps = 0
        self.changes = 0  # of what conditions are about
        self.history = History()
        self.watch: Callable[[SimNode, Event, Ready], None] | None = None
        self._values = 0
        for checker in checkers:
            checker.cluster = self
        # A hook costs nothing for checkers that do not use it.
        self._hooks = {
            name: [getattr(checker, name) for checker in checkers if name in type(checker).__dict__]
            for name in Checker.HOOKS
        }
        self._led = self._hooks["led"]
        self._said = self._hooks["said"]

    # Making it.

    def form(self, voter_ids: Iterable[int], observer_ids: Iterable[int] = (), **settings: int) -> None:
        """Make the nodes, formatted and not started; voters stand in their first snapshot, or in the settings."""
        ids = list(voter_ids)
        voters = Voters.of(
            Voter(id, self._directory(id, 0) if self.is_dynamic else bytes(16), (self._address(id),))
            for id in ids
        )
        everybody = [*ids, *observer_ids]
        bootstrap = tuple(Node(id, *self._address(id)[1:]) for id in everybody)
        for id in everybody:
            self._add_node(id, voters, bootstrap, settings)

    def _add_node(
        self, id: int, voters: Voters, bootstrap: tuple[Node, ...], settings: Mapping[str, int]
    ) -> None:
        node = SimNode(
            self,
            RaftSettings(
                id,
                self._directory(id, 0),
                CLUSTER_ID,
                (self._address(id),),
                bootstrap,
                LISTENER,
                **settings,  # type: ignore[arg-type]
            ),
            NO_VOTERS if self.is_dynamic else voters,
        )
        if self.is_dynamic and id in voters.by_id:
            snapshot = write_snapshot(BOOTSTRAP_ID, Content(b"", 1, voters))
            node.disk.keep_snapshot(BOOTSTRAP_ID, snapshot)
        self.nodes[id] = node
        self.by_port[node.settings.addresses[0].port] = node

    def replace_disk(self, id: int, *, auto_join: bool = False) -> None:
        """Give a node that is down another disk: empty, and with an id of its own."""
        node = self.nodes[id]
        node.disk = QuorumDisk()
        directory_id = self._directory(id, node.life)
        node.settings = replace(node.settings, directory_id=directory_id, auto_join=auto_join)

    def _directory(self, id: int, generation: int) -> bytes:
        return bytes([1, id, generation]) + bytes(12) + b"\x01"

    def _address(self, id: int) -> Address:
        return Address(LISTENER, f"node-{id}", 9000 + id)

    def entropy_of(self, id: int) -> SeededEntropy:
        """Where a node's own chance comes from."""
        return self._entropies.setdefault(id, SeededEntropy(self._seed * 131 + id))

    def node_at(self, node: Node) -> SimNode:
        """The node behind an address."""
        return self.by_port[node.port]

    def carry(self, message: Message) -> Message:
        """A message as it comes out on the other side."""
        if not self.is_encoded:
            return message
        version = message.versions[-1]
        return type(message).decode(message.encode(version), version)

    # What the nodes report.

    def stepped(self, node: SimNode, event: Event, ready: Ready) -> None:
        """A replica has made a step, and written what it asked for."""
        self.steps += 1
        if self.watch is not None:
            self.watch(node, event, ready)
        if node.leads:
            for hook in self._led:
                hook(node, event)
        if ready.is_to_sync:
            for hook in self._hooks["wrote"]:
                hook(node, ready)
        if ready.committed is not None:
            for hook in self._hooks["advanced"]:
                hook(node)
        if ready.committed is not None or ready.leadership is not None or ready.state is not None:
            self.changes += 1

    def said(self, node: SimNode, word: Send | Reply) -> None:
        """A node lets a word out."""
        for hook in self._said:
            hook(node, word)

    def cut_off(self, node: SimNode, entries: list[Entry], snapshot_offset: int | None) -> None:
        """A node has cut these off its log, for a snapshot up to an offset or for nothing."""
        for hook in self._hooks["cut_off"]:
            hook(node, entries, snapshot_offset)

    def committed(self, node: SimNode, entries: list[Entry]) -> None:
        """A node has handed these to its state machine."""
        for hook in self._hooks["committed"]:
            hook(node, entries)

    def loaded(self, node: SimNode) -> None:
        """A node has loaded a snapshot into its state machine."""
        for hook in self._hooks["loaded"]:
            hook(node)

    def announced(self, node: SimNode) -> None:
        """A node has told its state machine who leads."""
        for hook in self._hooks["announced"]:
            hook(node)

    def started(self, node: SimNode) -> None:
        """A node has started."""
        self.changes += 1
        for hook in self._hooks["started"]:
            hook(node)

    def trimmed(self, node: SimNode) -> None:
        """A node has removed the beginning of its log."""
        for hook in self._hooks["trimmed"]:
            hook(node)

    def stopped(self, node: SimNode) -> None:
        """A node has stopped, one way or another."""
        self.changes += 1

    # What scenarios do with it.

    def start_all(self) -> None:
        """Start every node that is down."""
        for node in self.nodes.values():
            if not node.is_up:
                node.start()

    def shut_down(self, id: int, timeout_ms: int = 5_000) -> None:
        """Let a node hand over its lead and stop."""
        node = self.nodes[id]
        life = node.life
        node.step(ShutDown(timeout_ms))
        deadline = self.schedule.now + timeout_ms

        def look() -> None:
            if node.life == life and node.raft is not None:
                if node.raft.is_stopped or self.schedule.now >= deadline:
                    node.stop()
                else:
                    self.schedule.after(20, look)

        look()

    def keep_proposing(self, interval_ms: int) -> None:
        """Let whoever thinks that it leads write a record every so often; each record is another."""
        for node in list(self.nodes.values()):
            if node.leads:
                self._values += 1
                node.propose(b"value-%d" % self._values)
        self.schedule.after(interval_ms, lambda: self.keep_proposing(interval_ms))

    def call(self, id: int, message: Message, answered: Callable[[Message], None]) -> None:
        """Ask a node something as a client; who is down does not answer."""
        node = self.nodes[id]
        call = Call(CLIENT, id, self.carry(message), answered)
        self.network.send(CLIENT, id, lambda: node.serve(call) if node.is_up else None)

    def run_for(self, duration_ms: int) -> None:
        """Let time pass."""
        end_ms = self.schedule.now + duration_ms
        self.schedule.after(duration_ms, lambda: None)
        while self.schedule.now < end_ms:
            self.schedule.run_next()

    def run_until(self, condition: Callable[[], bool], wish: str, limit_ms: int = 60_000) -> None:
        """Let time pass until something is so; Stuck when it takes too long."""
        end_ms = self.schedule.now + limit_ms
        changes = -1
        while True:
            if changes != self.changes:
                changes = self.changes
                if condition():
                    return
            if self.schedule.now > end_ms or not self.schedule.run_next():
                raise Stuck(f"after {limit_ms} ms it is still not so that {wish}: {self.describe()}")

    def describe(self) -> str:
        """Each node in a few words."""
        return "; ".join(
            f"{node.id} "
            + (
                f"{type(node.raft.replica.role).__name__} epoch {node.raft.epoch} end {node.raft.end_offset} "
                f"committed {node.raft.high_watermark}"
                if node.raft is not None
                else "down"
            )
            for node in self.nodes.values()
        )

    # What can be seen of it.

    def up(self, ids: Iterable[int] | None = None) -> list[SimNode]:
        """The nodes that run, of these or of all."""
        chosen = self.nodes.values() if ids is None else [self.nodes[id] for id in ids]
        return [node for node in chosen if node.is_up]

    def latest_leader(self) -> SimNode | None:
        """The leader of the highest epoch, if there is one."""
        leaders = [node for node in self.nodes.values() if node.leads]
        return max(leaders, key=lambda node: node.raft.epoch if node.raft is not None else 0, default=None)

    def agrees(self, ids: Iterable[int] | None = None) -> bool:
        """True when all that run follow one leader, in one epoch."""
        seen = {(node.raft.leader_id, node.raft.epoch) for node in self.up(ids) if node.raft is not None}
        if len(seen) != 1:
            return False
        leader_id = seen.pop()[0]
        return leader_id in self.nodes and self.nodes[leader_id].leads

    def highest_watermark(self, ids: Iterable[int] | None = None) -> int:
        """How far any of these knows the log to be committed."""
        return max((node.high_watermark for node in self.up(ids)), default=-1)

    def all_reached(self, offset: int, ids: Iterable[int] | None = None) -> bool:
        """True when all of these that run know the log to be committed up to `offset`."""
        return all(node.high_watermark >= offset for node in self.up(ids))
