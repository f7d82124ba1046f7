"""A node of the simulated quorum: the driver of one replica, in the small.

It does what the contract of `raft/ready.py` asks for: writes in order, syncs some time later, lets words out that may
leave, and hands what is committed to a state machine, which is a digest over all that it was given.
"""

from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING

from ottla.raft.election_state import ElectionState
from ottla.raft.event import (
    Append,
    Event,
    Failure,
    Received,
    Request,
    Response,
    Snapshotted,
    Spoiled,
    Start,
    Synced,
    Tick,
    Trimmed,
)
from ottla.raft.log_view import Memory
from ottla.raft.membership import Membership
from ottla.raft.raft import Raft
from ottla.raft.ready import Leadership, Ready, Reply, Send
from ottla.raft.settings import RaftSettings
from ottla.raft.snapshot import SnapshotId
from ottla.raft.voters import KRAFT_VERSIONS, Voters
from ottla.sim.quorum.disk import QuorumDisk
from ottla.sim.quorum.log import Entry
from ottla.sim.quorum.snapshot import Content, read_snapshot, write_snapshot
from ottla.wire.batch import build_batch
from ottla.wire.message import Message
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.record import Record

if TYPE_CHECKING:
    from ottla.sim.quorum.cluster import Cluster

EMPTY_DIGEST = b""


class Call:
    """A request between two nodes, or from a client, that waits for its answer."""

    __slots__ = ("answered", "message", "source", "target")

    def __init__(
        self, source: int, target: int, message: Message, answered: Callable[[Message], None]
    ) -> None:
        self.source = source
        self.target = target
        self.message = message
        self.answered = answered


class SimNode:
    """One node; `raft` is None while it is down."""

    def __init__(self, cluster: "Cluster", settings: RaftSettings, static: Voters) -> None:
        self.cluster = cluster
        self.settings = settings
        self.static = static
        self.id = settings.node_id
        self.disk = QuorumDisk()
        self.raft: Raft | None = None
        self.life = 0
        self.sync_ms = (0, 2)
        self._forget()

    def _forget(self) -> None:
        self._held: list[tuple[int, Send | Reply]] = []
        self._written = 0
        self._synced = 0
        self._syncing = False
        self._alarm: int | None = None
        self._part = bytearray()
        self.leadership = Leadership(-1, 0)
        self.applied_offset = 0
        self.digest = EMPTY_DIGEST

    @property
    def is_up(self) -> bool:
        """True while the node runs."""
        return self.raft is not None

    @property
    def leads(self) -> bool:
        """True when the node runs, and thinks that it leads."""
        return self.raft is not None and self.raft.is_leader

    @property
    def high_watermark(self) -> int:
        """How far the node knows the log to be committed; -1 while it is down."""
        return self.raft.high_watermark if self.raft is not None else -1

    def start(self) -> None:
        """Start from what the disk has."""
        assert self.raft is None
        self.life += 1
        self._forget()
        log = self.disk.log
        membership = log.recall(lambda: Membership(self.static))
        memory = Memory(self.disk.state or ElectionState(), log.outline(), membership)
        self.raft = Raft(self.settings, log, memory, self.cluster.entropy_of(self.id).below)
        self.cluster.started(self)
        self.step(Start())

    def kill(self, *, wipe: bool = False) -> None:
        """Stop at once, as when the power goes."""
        self.raft = None
        self.disk.lose_power(self.cluster.disk_entropy, tears=self.cluster.tears)
        if wipe:
            self.disk.wipe()
        self.cluster.stopped(self)

    def stop(self) -> None:
        """Stop in order, with everything synced."""
        self.disk.sync(self._written)
        self.kill()

    def step(self, event: Event) -> None:
        """Let an event happen to the replica, and do what it asks for."""
        raft, cluster = self.raft, self.cluster
        if raft is None:
            return
        now = cluster.schedule.now
        ready = raft.step(event, now)
        self._write(ready)
        cluster.stepped(self, event, ready)
        held = self._held
        for word in ready.send_after_sync:
            held.append((ready.number, word))
        for word in ready.send_now:
            self._say(word)
        if ready.committed is not None:
            self._apply(ready.committed)
        if ready.leadership is not None:
            self.leadership = ready.leadership
            cluster.announced(self)
        if ready.chunk is not None:
            self._keep(ready)
        if raft.deadline is not None and (self._alarm is None or raft.deadline < self._alarm):
            self._set_alarm(max(raft.deadline, now + 1))

    def _write(self, ready: Ready) -> None:
        if not ready.is_to_sync:
            return
        disk, number = self.disk, ready.number
        self._written = number
        if ready.state is not None:
            disk.write_state(number, ready.state)
        if ready.reset_to is not None:
            self.cluster.cut_off(self, disk.reset(number, ready.reset_to), ready.reset_to.offset)
        if ready.truncate_to is not None:
            self.cluster.cut_off(self, disk.truncate(number, ready.truncate_to), None)
        for data in ready.append:
            disk.append(number, data)
        if not self._syncing:
            self._begin_sync()

    def _begin_sync(self) -> None:
        self._syncing = True
        number, life = self._written, self.life
        low, high = self.sync_ms
        delay_ms = low + self.cluster.disk_entropy.below(high - low + 1)

        def done() -> None:
            if self.raft is not None and self.life == life:
                self._end_sync(number)

        self.cluster.schedule.after(delay_ms, done)

    def _end_sync(self, number: int) -> None:
        self.disk.sync(number)
        self._synced = number
        self._syncing = False
        if self._written > number:
            self._begin_sync()
        released = [word for waits_for, word in self._held if waits_for <= number]
        self._held = [each for each in self._held if each[0] > number]
        for word in released:
            self._say(word)
        self.step(Synced(number))

    def _set_alarm(self, time_ms: int) -> None:
        self._alarm = time_ms
        life = self.life

        def ring() -> None:
            if self.life == life and self._alarm == time_ms:
                self._alarm = None
                self.step(Tick())

        self.cluster.schedule.at(time_ms, ring)

    # Words.

    def _say(self, word: Send | Reply) -> None:
        cluster = self.cluster
        cluster.said(self, word)
        if isinstance(word, Reply):
            asked = word.token
            assert isinstance(asked, Call)
            tell = partial(asked.answered, cluster.carry(word.message))
            cluster.network.send(self.id, asked.source, tell)
            return
        life, request_id, node_id = self.life, word.request_id, word.node.id

        def answered(message: Message) -> None:
            if self.life == life:
                self.step(Response(request_id, node_id, message))

        def refused() -> None:
            if self.life == life:
                self.step(Failure(request_id, node_id))

        target = cluster.node_at(word.node)
        call = Call(self.id, target.id, cluster.carry(word.message), answered)

        def arrive() -> None:
            if target.is_up:
                target.serve(call)
            else:
                cluster.network.send(target.id, self.id, refused)

        cluster.network.send(self.id, target.id, arrive)

    def serve(self, call: Call) -> None:
        """Take a request in."""
        message = call.message
        if isinstance(message, ApiVersionsRequest):
            feature = ApiVersionsResponse.SupportedFeatureKey(
                name="kraft.version", min_version=KRAFT_VERSIONS[0], max_version=KRAFT_VERSIONS[1]
            )
            response = ApiVersionsResponse(supported_features=[feature])
            self.cluster.network.send(self.id, call.source, lambda: call.answered(response))
        else:
            self.step(Request(call, message, message.versions[-1], self.settings.listener))

    # The state machine.

    def propose(self, value: bytes) -> None:
        """Let the state machine, should it lead, write a record."""
        raft, now = self.raft, self.cluster.schedule.now
        if raft is not None and raft.is_leader and self.leadership == (self.id, raft.epoch):
            offset = raft.end_offset
            record = Record(offset, now, None, value)
            self.step(Append(build_batch([record], base_offset=offset, leader_epoch=raft.epoch)))

    def _apply(self, end_offset: int) -> None:
        log = self.disk.log
        if self.applied_offset < log.start_offset:
            newest = max(log.snapshots)
            content = read_snapshot(log.snapshots[newest])
            assert content is not None
            self.applied_offset, self.digest = newest.offset, content.digest
            self.cluster.loaded(self)
        entries = log.between(self.applied_offset, end_offset)
        for entry in entries:
            self.digest = blake2b(entry.data, digest_size=8, key=self.digest).digest()
        if entries:
            self.applied_offset = entries[-1].end_offset
            self.cluster.committed(self, entries)

    def take_snapshot(self) -> SnapshotId | None:
        """Write a snapshot of all that is committed; None when there is nothing new to say."""
        raft, log = self.raft, self.disk.log
        if raft is None or not log.entries or self.applied_offset <= log.start_offset:
            return None
        last = log.between(log.start_offset, self.applied_offset)[-1]
        id = SnapshotId(self.applied_offset, last.epoch)
        if id in log.snapshots or any(each.offset >= id.offset for each in log.snapshots):
            return None
        kraft_version, voters = raft.replica.membership.at(id.offset - 1)
        self.disk.keep_snapshot(id, write_snapshot(id, Content(self.digest, kraft_version, voters)))
        self.step(Snapshotted(id))
        return id

    def trim(self) -> None:
        """Remove from the log what the newest snapshot stands for."""
        if self.raft is None:
            return
        newest = max(self.disk.log.snapshots, default=None)
        if newest is not None and self.disk.log.start_offset < newest.offset <= self.disk.log.end_offset:
            self.disk.trim(newest)
            self.step(Trimmed(newest))
            self.cluster.trimmed(self)

    def _keep(self, ready: Ready) -> None:
        chunk = ready.chunk
        assert chunk is not None
        if chunk.position == 0:
            self._part = bytearray()
        assert chunk.position == len(self._part), "pieces of a snapshot come in order"
        self._part += chunk.data
        if not chunk.is_last:
            return
        data, life, cluster = bytes(self._part), self.life, self.cluster
        content = read_snapshot(data)

        def kept() -> None:
            if self.life != life or self.raft is None:
                return
            if content is None:
                self.step(Spoiled(chunk.id))
            else:
                self.disk.keep_snapshot(chunk.id, data)
                self.step(Received(chunk.id, content.kraft_version, content.voters))

        cluster.schedule.after(1 + cluster.disk_entropy.below(3), kept)

    def entry_at(self, offset: int) -> Entry | None:
        """The batch that begins at an offset, if the log has one."""
        found = self.disk.log.between(offset, offset + 1)
        return found[0] if found else None
