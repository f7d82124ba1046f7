"""A bench with one replica on it: it does what Ready asks for, and shows what was said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ottla.raft.election_state import ElectionState
from ottla.raft.event import Append, Event, Received, Request, Response, Start, Synced, Tick
from ottla.raft.log_view import Memory
from ottla.raft.membership import Membership
from ottla.raft.raft import Raft
from ottla.raft.ready import Ready, Reply, Send
from ottla.raft.settings import Node, RaftSettings
from ottla.raft.snapshot import BOOTSTRAP_ID
from ottla.raft.voters import NO_VOTERS, Address, Voter, Voters
from ottla.sim.quorum.log import SimLog, entries_in
from ottla.sim.quorum.snapshot import Content, read_snapshot, write_snapshot
from ottla.wire.batch import build_batch, read_records, scan
from ottla.wire.control import ControlType, read_control
from ottla.wire.message import Message
from ottla.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.vote import VoteRequest, VoteResponse
from ottla.wire.record import Record
from ottla.wire.uuid import METADATA_TOPIC_ID

CLUSTER = "the-cluster"
TOPIC = "__cluster_metadata"
LISTENER = "CONTROLLER"
M = TypeVar("M", bound=Message)


def directory(id: int) -> bytes:
    return bytes([id]) * 16


def address(id: int) -> Address:
    return Address(LISTENER, f"node-{id}", 9000 + id)


def voter(id: int) -> Voter:
    return Voter(id, directory(id), (address(id),))


def voters(*ids: int) -> Voters:
    return Voters.of(voter(id) for id in ids)


def batch(offset: int, epoch: int, value: bytes = b"value") -> bytes:
    return bytes(build_batch([Record(offset, 0, None, value)], base_offset=offset, leader_epoch=epoch))


class Bench:
    """Replica 1 of some voters. `epochs` are those of the batches that its log begins with."""

    def __init__(
        self,
        *ids: int,
        epochs: Sequence[int] = (),
        state: ElectionState | None = None,
        static: bool = False,
        own_id: int = 1,
        start: bool = True,
        draw: Callable[[int], int] = lambda bound: 0,
        **settings: Any,
    ) -> None:
        self.now = 1_000_000
        self.log = SimLog()
        self.ids = ids or (1, 2, 3)
        self.own_id = own_id
        named = voters(*self.ids)
        if static:
            named = Voters.of(each._replace(directory_id=bytes(16)) for each in named.by_id.values())
        else:
            self.log.snapshots[BOOTSTRAP_ID] = write_snapshot(BOOTSTRAP_ID, Content(b"", 1, named))
        for offset, epoch in enumerate(epochs):
            self.log.append(entries_in(batch(offset, epoch)))
        self.state = state or ElectionState(max(epochs, default=0))
        self.settings = RaftSettings(
            own_id,
            directory(own_id),
            CLUSTER,
            (address(own_id),),
            tuple(Node(id, f"node-{id}", 9000 + id) for id in self.ids),
            **settings,
        )
        self.static = named if static else NO_VOTERS
        self.draw = draw
        self.syncs = True  # at once
        self.committed = -1
        self.ready = Ready(0)
        self.begin()
        if start:
            self.step(Start())

    def begin(self) -> None:
        membership = self.log.recall(lambda: Membership(self.static))
        memory = Memory(self.state, self.log.outline(), membership)
        self.raft = Raft(self.settings, self.log, memory, self.draw)
        self.said: list[Send | Reply] = []
        self.held: list[Send | Reply] = []

    @property
    def role(self) -> str:
        return type(self.raft.replica.role).__name__

    @property
    def leader_role(self) -> Any:
        return self.raft.replica.leader

    def step(self, event: Event) -> Ready:
        ready = self.ready = self.raft.step(event, self.now)
        if ready.state is not None:
            self.state = ready.state
        if ready.reset_to is not None:
            self.log.reset(ready.reset_to)
        if ready.truncate_to is not None:
            self.log.truncate(ready.truncate_to)
        for data in ready.append:
            self.log.append(entries_in(data))
        if ready.committed is not None:
            self.committed = ready.committed
        if ready.chunk is not None and ready.chunk.is_last:
            content = read_snapshot(ready.chunk.data)
            if content is not None:
                self.log.snapshots[ready.chunk.id] = ready.chunk.data
        self.said += ready.send_now
        self.held += ready.send_after_sync
        if ready.is_to_sync and self.syncs:
            self.sync()
        return ready

    def sync(self) -> None:
        number = self.raft.replica.outbox.number
        released, self.held = self.held, []
        self.said += released
        self.step(Synced(number))

    def wait(self, duration_ms: int) -> None:
        """Let time pass, with a tick whenever one is worth giving."""
        end = self.now + duration_ms
        while self.raft.deadline is not None and self.raft.deadline <= end:
            self.now = max(self.now, self.raft.deadline)
            self.step(Tick())
            if self.raft.deadline is not None and self.raft.deadline <= self.now:
                self.now += 1
        self.now = end

    def ask(self, message: Message, version: int | None = None) -> Any:
        """Send a request to the replica, and return its answer; None while there is none."""
        token = object()
        at = len(self.said)
        self.step(Request(token, message, message.versions[-1] if version is None else version, LISTENER))
        for word in self.said[at:]:
            if isinstance(word, Reply) and word.token is token:
                self.said.remove(word)
                return word.message
        return None

    def sent(self, kind: type[M]) -> list[tuple[int, M]]:
        """What the replica has asked others, and not been answered: take it out and return it."""
        found = [word for word in self.said if isinstance(word, Send) and isinstance(word.message, kind)]
        self.said = [word for word in self.said if word not in found]
        self.open = {word.node.id: word.request_id for word in found}
        return [(word.node.id, word.message) for word in found if isinstance(word.message, kind)]

    def answer(self, node_id: int, message: Message) -> Ready:
        """Let a node answer the last request that `sent` has shown."""
        return self.step(Response(self.open[node_id], node_id, message))

    # Passing from role to role.

    def grant(
        self, node_id: int, *, granted: bool = True, epoch: int | None = None, leader_id: int = -1
    ) -> None:
        self.answer(node_id, vote_response(self.raft.epoch if epoch is None else epoch, granted, leader_id))

    def lead(self) -> Bench:
        """Let the replica win an election, with the vote of the voter after it."""
        if self.role == "Leader":
            return self
        while self.role not in ("Prospective", "Candidate"):
            self.wait(100)
        while self.role in ("Prospective", "Candidate"):
            self.sent(VoteRequest)
            needed = len(self.ids) // 2
            for id in [each for each in self.ids if each != self.own_id][:needed]:
                if self.role in ("Prospective", "Candidate") and id in self.open:
                    self.grant(id)
        assert self.role == "Leader"
        return self

    def establish(self) -> Bench:
        """Let the leader commit the first record of its epoch."""
        self.lead()
        for id in self.ids[1 : len(self.ids) // 2 + 1]:
            self.fetch_by(id, self.raft.end_offset)
        assert self.leader_role.is_established
        return self

    def follow(self, leader_id: int = 2, epoch: int | None = None) -> Bench:
        """Let the replica hear of a leader by its first fetch."""
        epoch = self.raft.epoch + 1 if epoch is None else epoch
        self.sent(FetchRequest)
        node_id = next(iter(self.open))
        self.answer(node_id, fetch_response(leader_id, epoch, code=74))
        assert self.role == "Follower"
        return self

    def fetch_by(
        self, id: int, offset: int, *, last_epoch: int | None = None, wait_ms: int = 0, **more: Any
    ) -> Any:
        """Let another replica fetch from this one."""
        epoch = self.raft.epoch
        known = self.raft.replica.outline.last_epoch if last_epoch is None else last_epoch
        return self.ask(fetch_request(id, offset, known, more.pop("epoch", epoch), wait_ms=wait_ms, **more))

    def append(self, value: bytes = b"value") -> int:
        """Let the leader append a record; return its offset."""
        offset = self.raft.end_offset
        self.step(Append(batch(offset, self.raft.epoch, value)))
        return offset

    def controls(self) -> list[ControlType]:
        """The control records in the log."""
        return [
            control.type
            for entry in self.log.entries
            if entry.is_control
            for position, _ in scan(entry.data)
            for record in read_records(entry.data, position)
            if (control := read_control(record)) is not None
        ]

    def receive(self, id: Any) -> Ready:
        """Put the snapshot that was fetched on disk."""
        content = read_snapshot(self.log.snapshots[id])
        assert content is not None
        return self.step(Received(id, content.kraft_version, content.voters))


def vote_request(
    id: int, epoch: int, last_epoch: int, offset: int, *, pre_vote: bool = False, to: int = 1, **more: Any
) -> VoteRequest:
    kind = VoteRequest.TopicData
    return VoteRequest(
        cluster_id=more.get("cluster_id", CLUSTER),
        voter_id=to,
        topics=[
            kind(
                topic_name=more.get("topic", TOPIC),
                partitions=[
                    kind.PartitionData(
                        replica_epoch=epoch,
                        replica_id=id,
                        replica_directory_id=directory(id),
                        voter_directory_id=more.get("directory_id", directory(to)),
                        last_offset_epoch=last_epoch,
                        last_offset=offset,
                        pre_vote=pre_vote,
                    )
                ],
            )
        ],
    )


def vote_response(epoch: int, granted: bool, leader_id: int = -1, code: int = 0) -> VoteResponse:
    kind = VoteResponse.TopicData
    partition = kind.PartitionData(
        error_code=code, leader_id=leader_id, leader_epoch=epoch, vote_granted=granted
    )
    return VoteResponse(topics=[kind(topic_name=TOPIC, partitions=[partition])])


def fetch_request(
    id: int,
    offset: int,
    last_epoch: int,
    epoch: int,
    *,
    wait_ms: int = 0,
    high_watermark: int = 2**62,
    **more: Any,
) -> FetchRequest:
    kind = FetchRequest.FetchTopic
    return FetchRequest(
        cluster_id=more.get("cluster_id", CLUSTER),
        replica_state=FetchRequest.ReplicaState(replica_id=id),
        max_wait_ms=wait_ms,
        max_bytes=more.get("max_bytes", 1 << 20),
        topics=[
            kind(
                topic_id=METADATA_TOPIC_ID,
                partitions=[
                    kind.FetchPartition(
                        current_leader_epoch=epoch,
                        fetch_offset=offset,
                        last_fetched_epoch=last_epoch,
                        replica_directory_id=more.get("directory_id", directory(max(id, 0))),
                        high_watermark=high_watermark,
                    )
                ],
            )
        ],
    )


def fetch_response(
    leader_id: int,
    epoch: int,
    records: bytes = b"",
    high_watermark: int = -1,
    *,
    code: int = 0,
    diverging: tuple[int, int] | None = None,
    snapshot: tuple[int, int] | None = None,
) -> FetchResponse:
    kind = FetchResponse.FetchableTopicResponse
    part = kind.PartitionData(
        error_code=code,
        high_watermark=high_watermark,
        current_leader=kind.PartitionData.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch),
        aborted_transactions=None,
        records=records,
    )
    if diverging is not None:
        part.diverging_epoch = kind.PartitionData.EpochEndOffset(end_offset=diverging[0], epoch=diverging[1])
    if snapshot is not None:
        part.snapshot_id = kind.PartitionData.SnapshotId(end_offset=snapshot[0], epoch=snapshot[1])
    return FetchResponse(responses=[kind(topic_id=METADATA_TOPIC_ID, partitions=[part])])


def told(response: FetchResponse) -> FetchResponse.FetchableTopicResponse.PartitionData:
    """The one partition of an answer."""
    return response.responses[0].partitions[0]


def begin_request(
    leader_id: int, epoch: int, *, to: int = 1, directory_id: bytes | None = None
) -> BeginQuorumEpochRequest:
    kind = BeginQuorumEpochRequest.TopicData
    part = kind.PartitionData(
        voter_directory_id=directory(to) if directory_id is None else directory_id,
        leader_id=leader_id,
        leader_epoch=epoch,
    )
    endpoint = BeginQuorumEpochRequest.LeaderEndpoint(
        name="CONTROLLER", host=f"node-{leader_id}", port=9000 + leader_id
    )
    return BeginQuorumEpochRequest(
        cluster_id=CLUSTER,
        voter_id=to,
        topics=[kind(topic_name=TOPIC, partitions=[part])],
        leader_endpoints=[endpoint],
    )
