"""A broker that is all there towards the controllers, and empty inside.

Production code: the Raft replica that follows the metadata log (`Raft`, `Driver`), its wires, connections and their
codec, registration and heartbeats (`Membership`), the way to the active controller (`Line`).
Stands in: the log forgets what was fetched, the image is one that all stand-ins share (`library.py`), there are no
partitions, and so no followers' fetches; whoever connects is let in and hears nothing. What a leader does for the
in-sync set is done from the image: a replica whose broker is back in service is proposed at once, as if it were level.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from bench.scale.library import Library
from ottla.broker.controller_line import Line
from ottla.channel.peers import Address as PeerAddress
from ottla.channel.peers import Peer
from ottla.metadata.fold import Change
from ottla.metadata.topics import PartitionState
from ottla.node.endpoint import Endpoint, SecurityProtocol
from ottla.node.membership import Membership, broker_registration
from ottla.node.wires import QuorumWires
from ottla.quorum.driver import Driver
from ottla.quorum.snapshots import Snapshots
from ottla.quorum.surroundings import QuorumSettings, Surroundings
from ottla.raft.election_state import ElectionState
from ottla.raft.log_view import Memory
from ottla.raft.membership import Membership as Voting
from ottla.raft.outline import Outline
from ottla.raft.ready import Leadership
from ottla.raft.snapshot import SnapshotId
from ottla.raft.voters import Voters
from ottla.sim.cluster.clock import SimClock
from ottla.sim.cluster.disk import SimDisk
from ottla.sim.cluster.fabric import Fabric
from ottla.sim.cluster.machine import BROKER_PORT, host_of
from ottla.sim.cluster.network import SimNetwork
from ottla.sim.cluster.worker import SimWorker
from ottla.sim.loop import Process, Timeline
from ottla.wire.batch import scan
from ottla.wire.message import Message
from ottla.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatResponse
from ottla.world.entropy import SeededEntropy

Place = tuple[bytes, int]
Watch = Callable[["StandIn", Message], None]
BEAT_MS = 500
SYNC_S = (0.0005, 0.004)
_AGAIN_S = 0.05
_LOG = "/log"
_Topic = AlterPartitionRequest.TopicData
_Partition = _Topic.PartitionData


class _Mute(asyncio.Protocol):
    """Lets a visitor in, and says nothing."""


class _ForgetfulLog:
    """A log of which only the end is kept."""

    path = _LOG

    def __init__(self, library: Library) -> None:
        self._library = library
        self.end_offset = 0

    def append_as_follower(self, data: bytes) -> None:
        self._library.shelve(data)
        for _, batch in scan(data):
            self.end_offset = batch.end_offset

    def truncate_to(self, offset: int) -> None:
        self.end_offset = offset

    def unsynced(self) -> list[Any]:
        return []

    def synced(self, offset: int) -> None:
        pass


class StandIn:
    """One broker."""

    def __init__(
        self,
        id: int,
        timeline: Timeline,
        fabric: Fabric,
        library: Library,
        voters: Voters,
        cluster_id: str,
        answered: Watch,
        learned: Callable[["StandIn", Change], None],
    ) -> None:
        self.id = self.node_id = id
        self.host = host_of(id)
        self.process = Process(timeline, f"{self.host}/1")
        self.library = library
        self.voters = voters
        self.offset = 0
        self.epoch = -1
        self.leader_id = -1
        self.is_active = False  # as a controller
        self.quorum = self  # as far as Line asks
        self.offline_directories: list[bytes] = []
        self.cordoned_directories: list[bytes] = []
        self.expanded = 0
        self._answered = answered
        self._learned = learned
        self._network = SimNetwork(fabric, self.process, self.host)
        self._entropy = SeededEntropy(id * 101)
        self._directory = self._entropy.uuid()
        self._peers: dict[int, Peer] = {}
        self._line = Line(self, {}, self._controller)
        self._cluster_id = cluster_id
        self._clock = SimClock(timeline)
        self._settings = QuorumSettings(
            id, _LOG, self._directory, voters=voters, cluster_id=cluster_id, can_vote=False
        )
        self.call_soon, self.call_later = self.process.call_soon, self.process.call_later

    # Life

    def start(self) -> None:
        self.process.create_task(self._start())

    async def _start(self) -> None:
        listening = await self._network.listen(self.host, BROKER_PORT, _Mute)
        await listening.serve()
        disk = SimDisk()
        disk.make_dirs(_LOG)
        process = self.process
        surroundings = Surroundings(
            disk,
            self._clock,
            SimWorker(process, self._entropy, lambda: SYNC_S),
            process.call_soon,
            call_later=process.call_later,
            draw=self._entropy.below,
        )
        wires = QuorumWires(lambda address: self._peer(lambda: address), lambda node_id: None)
        self._driver = Driver(
            surroundings,
            self._settings.raft(),
            _ForgetfulLog(self.library),  # type: ignore[arg-type]
            Snapshots(disk, _LOG),
            Memory(ElectionState(), Outline(), Voting(self.voters)),
            wires,
            self,
            self._entropy.below,
            self._failed,
        )
        self._driver.start()
        registration = broker_registration(
            self.id,
            self._cluster_id,
            self._entropy.uuid(),
            [Endpoint("PLAINTEXT", SecurityProtocol.PLAINTEXT, self.host, BROKER_PORT)],
            None,
            [self._directory],
            -1,
        )
        self.membership = Membership(self, process, registration, self, lambda: BEAT_MS, self._refused)
        self.membership.start()

    @property
    def metadata_offset(self) -> int:
        return self.offset

    @property
    def serves(self) -> bool:
        return hasattr(self, "membership") and not self.membership.is_fenced

    def _failed(self, error: OSError) -> None:
        self.process.faults.append(f"{self.host} failed: {error}")

    def _refused(self, error: Exception) -> None:
        self.process.faults.append(f"{self.host} was refused: {error}")

    # Ways

    def _peer(self, address: Callable[[], PeerAddress | None]) -> Peer:
        return Peer(self._network, self.process, address, f"node-{self.id}", timeout_s=30.0)

    def _controller(self, node_id: int) -> Peer:
        if node_id not in self._peers:
            known = self.voters.addresses_of(node_id)[0]
            self._peers[node_id] = self._peer(lambda: PeerAddress(known.host, known.port))
        return self._peers[node_id]

    def ask(self, request: Message, response: type[Any], answered: Callable[[Any], object]) -> None:
        """Ask the active controller, and tell whoever watches of its answer."""

        def heard(answer: Any) -> None:
            if not isinstance(answer, Exception) and not getattr(answer, "error_code", 0):
                self._answered(self, answer)
            answered(answer)

        self._line.ask(request, response, heard)

    # What Raft tells

    def committed(self, end_offset: int) -> None:
        start_offset, self.offset = self.offset, end_offset
        for change in self.library.changes(start_offset, end_offset):
            self._learned(self, change)
            for broker_id, broker in change.delta.brokers.items():
                before = change.delta.before.brokers.get(broker_id)
                if broker is None or broker_id == self.id:
                    continue
                if not broker.fenced and before is not None and before.fenced:
                    behind = self.library.out_of_sync(change, broker_id).get(self.id, [])
                    self.propose([(place, state, (*state.isr, broker_id)) for place, state in behind], change)

    def installed(self, id: SnapshotId) -> None:
        raise AssertionError("nobody who stands in falls behind so far that it needs a snapshot")

    def led(self, leadership: Leadership) -> None:
        self.leader_id = leadership.leader_id
        for node_id, peer in self._peers.items():
            if node_id != self.leader_id:
                peer.hang_up()
        if self.leader_id >= 0 and hasattr(self, "membership"):
            self.membership.beat()

    # What a leader does

    def propose(self, wishes: list[tuple[Place, PartitionState, tuple[int, ...]]], change: Change) -> None:
        """Ask for other in-sync sets, until the controller has answered."""
        if not wishes:
            return
        brokers = change.image.brokers
        topics: dict[bytes, list[_Partition]] = {}
        for (topic_id, index), state, isr in wishes:
            topics.setdefault(topic_id, []).append(
                _Partition(
                    partition_index=index,
                    leader_epoch=state.leader_epoch,
                    new_isr_with_epochs=[
                        _Partition.BrokerState(broker_id=id, broker_epoch=brokers[id].epoch) for id in isr
                    ],
                    partition_epoch=state.partition_epoch,
                )
            )
        request = AlterPartitionRequest(
            broker_id=self.id,
            broker_epoch=self.membership.epoch,
            topics=[_Topic(topic_id=id, partitions=parts) for id, parts in topics.items()],
        )

        def send() -> None:
            self.ask(request, AlterPartitionResponse, answered)

        def answered(answer: AlterPartitionResponse | Exception) -> None:
            if isinstance(answer, Exception) or answer.error_code:
                self.process.call_later(_AGAIN_S, send)
                return
            for topic in answer.topics:
                self.expanded += sum(not part.error_code for part in topic.partitions)

        send()


def beats(answer: Message) -> bool:
    """Whether an answer is one to a heartbeat."""
    return isinstance(answer, BrokerHeartbeatResponse)
