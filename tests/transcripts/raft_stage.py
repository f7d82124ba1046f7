"""A stage for replicas: commands make things happen, and what follows is written down.

quorum 1 2 3 [observers 4]   format nodes and start them
quorum 1 2 3 led by 1        and let node 1 be elected, without a word about it
wait 500                     let time pass; words wait to be delivered
tick 1                       let time pass until node 1 has something to do
deliver [1 [2]]              deliver what is under way (from 1 (to 2)), until nothing is
drop [1 [2]]                 lose it instead
append 1 hello               let node 1 append a record
slow 1, sync 1               syncs of node 1 take until they are told to end
crash 1, start 1, wipe 1     stop a node with what is not synced lost; start it; give it an empty disk
snapshot 1, trim 1           let node 1 take a snapshot; remove the log before it
add 4 to 1, remove 2 from 1  ask node 1 for a change of voters
resign 1, stop 1             let node 1 give up its lead; or hand it over and stop
log 1                        show the log of node 1
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ottla.raft.election_state import ElectionState
from ottla.raft.event import (
    Append,
    Event,
    Received,
    Request,
    Resign,
    Response,
    ShutDown,
    Snapshotted,
    Start,
    Synced,
    Tick,
    Trimmed,
)
from ottla.raft.log_view import Memory
from ottla.raft.membership import Membership
from ottla.raft.raft import Raft
from ottla.raft.ready import Ready, Reply, Send
from ottla.raft.settings import Node, RaftSettings
from ottla.raft.snapshot import BOOTSTRAP_ID, SnapshotId
from ottla.raft.voters import NO_VOTERS, Address, Voter, Voters
from ottla.sim.quorum.disk import QuorumDisk
from ottla.sim.quorum.snapshot import Content, read_snapshot, write_snapshot
from ottla.wire.batch import build_batch, read_records
from ottla.wire.control import read_control
from ottla.wire.message import Message
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from ottla.wire.record import Record
from ottla.world.entropy import SeededEntropy
from tests.transcripts.raft_words import text_of

CLUSTER = "the-cluster"
LISTENER = "CONTROLLER"
OPERATOR = 0


class Letter:
    """A message under way."""

    def __init__(self, source: int, target: int, message: Message, arrive: Callable[[], None]) -> None:
        self.source = source
        self.target = target
        self.message = message
        self.arrive = arrive


class Player:
    """One node on the stage."""

    def __init__(self, stage: Stage, settings: RaftSettings) -> None:
        self.stage = stage
        self.settings = settings
        self.id = settings.node_id
        self.disk = QuorumDisk()
        self.raft: Raft | None = None
        self.life = 0
        self.is_slow = False
        self.forget()

    def forget(self) -> None:
        self.held: list[tuple[int, Send | Reply]] = []
        self.written = 0
        self.part = bytearray()
        self.committed = 0

    def start(self) -> None:
        self.life += 1
        self.forget()
        membership = self.disk.log.recall(lambda: Membership(NO_VOTERS))
        memory = Memory(self.disk.state or ElectionState(), self.disk.log.outline(), membership)
        # Jitter by node id, so that node 1 stands first.
        self.raft = Raft(self.settings, self.disk.log, memory, lambda bound: bound * (self.id - 1) // 10)
        self.step(Start())

    def crash(self) -> None:
        self.raft = None
        self.life += 1
        self.disk.lose_power(Nothing(), tears=False)

    def step(self, event: Event) -> None:
        raft, stage = self.raft, self.stage
        if raft is None:
            return
        ready = raft.step(event, stage.now)
        self.write(ready)
        stage.tell(self, ready)
        for word in ready.send_now:
            self.say(word)
        self.held += [(ready.number, word) for word in ready.send_after_sync]
        if ready.committed is not None:
            self.committed = ready.committed
        if ready.is_to_sync and not self.is_slow:
            self.sync()
        if ready.chunk is not None:
            if ready.chunk.position == 0:
                self.part = bytearray()
            self.part += ready.chunk.data
            if ready.chunk.is_last:
                content = read_snapshot(bytes(self.part))
                assert content is not None
                self.disk.keep_snapshot(ready.chunk.id, bytes(self.part))
                self.step(Received(ready.chunk.id, content.kraft_version, content.voters))

    def write(self, ready: Ready) -> None:
        if not ready.is_to_sync:
            return
        self.written = ready.number
        if ready.state is not None:
            self.disk.write_state(ready.number, ready.state)
        if ready.reset_to is not None:
            self.disk.reset(ready.number, ready.reset_to)
        if ready.truncate_to is not None:
            self.disk.truncate(ready.number, ready.truncate_to)
        for data in ready.append:
            self.disk.append(ready.number, data)

    def sync(self) -> None:
        self.disk.sync(self.written)
        held, self.held = self.held, []
        for _, word in held:
            self.say(word)
        self.step(Synced(self.written))

    def say(self, word: Send | Reply) -> None:
        stage, life = self.stage, self.life
        if isinstance(word, Reply):
            source, answered = word.token  # type: ignore[misc]
            stage.post(Letter(self.id, source, word.message, lambda: answered(word.message)))
            return
        node_id, request_id = word.node.id, word.request_id

        def answered(message: Message) -> None:
            if self.life == life:
                self.step(Response(request_id, node_id, message))

        target = stage.players[node_id]
        stage.post(
            Letter(self.id, node_id, word.message, lambda: target.serve(self.id, word.message, answered))
        )

    def serve(self, source: int, message: Message, answered: Callable[[Message], None]) -> None:
        if isinstance(message, ApiVersionsRequest):
            feature = ApiVersionsResponse.SupportedFeatureKey(
                name="kraft.version", min_version=0, max_version=1
            )
            response = ApiVersionsResponse(supported_features=[feature])
            self.stage.post(Letter(self.id, source, response, lambda: answered(response)))
        else:
            self.step(Request((source, answered), message, message.versions[-1], LISTENER))


class Nothing(SeededEntropy):
    """Of what was not synced, nothing is kept."""

    def __init__(self) -> None:
        super().__init__(0)

    def below(self, bound: int) -> int:
        return 0


class Stage:
    """The players, the words between them, and the page that all is written on."""

    def __init__(self) -> None:
        self.now = 1_000_000
        self.players: dict[int, Player] = {}
        self.letters: list[Letter] = []
        self.page: list[str] = []

    def run(self, line: str) -> list[str]:
        """Carry out a command, and return what followed."""
        self.page = []
        verb, *words = line.split()
        getattr(self, f"do_{verb}")(*words)
        return self.page

    def post(self, letter: Letter) -> None:
        self.letters.append(letter)

    def tell(self, player: Player, ready: Ready) -> None:
        raft = player.raft
        assert raft is not None
        parts = []
        if ready.state is not None:
            state = ready.state
            known = [f"epoch {state.epoch}"]
            known += [f"leader {state.leader_id}"] if state.leader_id >= 0 else []
            known += [f"vote for {state.voted_id}"] if state.voted_id >= 0 else []
            parts.append("remembers " + ", ".join(known))
        if ready.reset_to is not None:
            parts.append(f"begins its log anew at {ready.reset_to.offset}")
        if ready.truncate_to is not None:
            parts.append(f"cuts its log to {ready.truncate_to}")
        if ready.append:
            parts.append(f"appends up to {raft.end_offset}")
        if ready.chunk is not None:
            parts.append(f"keeps {len(ready.chunk.data)} bytes of the snapshot")
        if ready.committed is not None:
            parts.append(f"knows {ready.committed} committed")
        if ready.leadership is not None and ready.leadership.leader_id >= 0:
            who = "itself" if ready.leadership.leader_id == player.id else str(ready.leadership.leader_id)
            parts.append(f"is led by {who} in epoch {ready.leadership.epoch}")
        says = [(word, "") for word in ready.send_now]
        if player.is_slow:
            says += [(word, " once that is synced") for word in ready.send_after_sync]
        else:
            says += [(word, "") for word in ready.send_after_sync]
        said: dict[str, list[int]] = {}
        for word, wait in says:
            target = word.node.id if isinstance(word, Send) else word.token[0]  # type: ignore[index]
            said.setdefault(f"{text_of(word.message)}{wait}", []).append(target)
        for text, targets in said.items():
            to = ", ".join("the operator" if target == OPERATOR else str(target) for target in targets)
            parts.append(f"to {to}: {text}")
        if parts:
            role = type(raft.replica.role).__name__.lower()
            self.page.append(f"{player.id} ({role}) " + "; ".join(parts))

    # Commands.

    def do_quorum(self, *words: str) -> None:
        is_led = words[-3:-1] == ("led", "by")
        words = words[:-3] if is_led else words
        ids = [int(word) for word in words if word.isdigit()]
        observers = set()
        if "observers" in words:
            at = words.index("observers")
            observers = {int(word) for word in words[at + 1 :]}
        voters = Voters.of(Voter(id, directory(id), (address(id),)) for id in ids if id not in observers)
        nodes = tuple(Node(id, f"node-{id}", 9000 + id) for id in voters.by_id)
        for id in ids:
            settings = RaftSettings(
                id, directory(id), CLUSTER, (address(id),), nodes, LISTENER, snapshot_bytes_max=150
            )
            player = self.players[id] = Player(self, settings)
            if id not in observers:
                content = Content(b"", 1, voters)
                player.disk.keep_snapshot(BOOTSTRAP_ID, write_snapshot(BOOTSTRAP_ID, content))
        for player in self.players.values():
            player.start()
        if is_led:
            while any(player.committed < 3 for player in self.players.values()):
                self.do_deliver()
                self.do_wait("50")
            self.page = []

    def do_wait(self, duration: str) -> None:
        end = self.now + int(duration)
        while True:
            due = [
                (player.raft.deadline, player.id)
                for player in self.players.values()
                if player.raft is not None
                and player.raft.deadline is not None
                and player.raft.deadline <= end
            ]
            if not due:
                break
            deadline, id = min(due)
            self.now = max(self.now, deadline)
            raft = self.players[id].raft
            self.players[id].step(Tick())
            if raft is not None and raft.deadline is not None and raft.deadline <= self.now:
                self.now += 1
        self.now = end

    def do_tick(self, id: str) -> None:
        raft = self.players[int(id)].raft
        assert raft is not None
        assert raft.deadline is not None
        self.now = max(self.now, raft.deadline)
        self.players[int(id)].step(Tick())

    def do_deliver(self, source: str = "", target: str = "") -> None:
        for _ in range(500):
            letter = next((each for each in self.letters if self._is(each, source, target)), None)
            if letter is None:
                return
            self.letters.remove(letter)
            if letter.target == OPERATOR:
                self.page.append(f"the operator hears of {letter.source}: {text_of(letter.message)}")
            else:
                letter.arrive()
        raise AssertionError("this goes on forever")

    def do_drop(self, source: str = "", target: str = "") -> None:
        self.letters = [each for each in self.letters if not self._is(each, source, target)]

    def _is(self, letter: Letter, source: str, target: str) -> bool:
        return (not source or letter.source == int(source)) and (not target or letter.target == int(target))

    def do_append(self, id: str, value: str) -> None:
        player = self.players[int(id)]
        assert player.raft is not None
        offset = player.raft.end_offset
        record = Record(offset, self.now, None, value.encode())
        player.step(Append(build_batch([record], base_offset=offset, leader_epoch=player.raft.epoch)))

    def do_slow(self, id: str) -> None:
        self.players[int(id)].is_slow = True

    def do_sync(self, id: str) -> None:
        player = self.players[int(id)]
        player.sync()

    def do_crash(self, id: str) -> None:
        self.players[int(id)].crash()

    def do_start(self, id: str) -> None:
        self.players[int(id)].start()

    def do_wipe(self, id: str) -> None:
        player = self.players[int(id)]
        player.crash()
        player.disk = QuorumDisk()
        player.settings = replace(player.settings, directory_id=directory(100 + int(id)))

    def do_snapshot(self, id: str) -> None:
        player = self.players[int(id)]
        raft = player.raft
        assert raft is not None
        last = player.disk.log.between(0, player.committed)[-1]
        snapshot_id = SnapshotId(player.committed, last.epoch)
        version, voters = raft.replica.membership.at(snapshot_id.offset - 1)
        player.disk.keep_snapshot(
            snapshot_id, write_snapshot(snapshot_id, Content(b"state", version, voters))
        )
        player.step(Snapshotted(snapshot_id))

    def do_trim(self, id: str) -> None:
        player = self.players[int(id)]
        newest = max(player.disk.log.snapshots)
        player.disk.trim(newest)
        player.step(Trimmed(newest))

    def do_add(self, id: str, _: str, leader: str) -> None:
        settings = self.players[int(id)].settings
        listener = AddRaftVoterRequest.Listener(name=LISTENER, host=f"node-{id}", port=9000 + int(id))
        self._operate(
            leader,
            AddRaftVoterRequest(
                cluster_id=CLUSTER,
                voter_id=int(id),
                voter_directory_id=settings.directory_id,
                listeners=[listener],
            ),
        )

    def do_remove(self, id: str, _: str, leader: str) -> None:
        self._operate(
            leader,
            RemoveRaftVoterRequest(
                cluster_id=CLUSTER, voter_id=int(id), voter_directory_id=directory(int(id))
            ),
        )

    def _operate(self, leader: str, request: Message) -> None:
        self.players[int(leader)].serve(OPERATOR, request, lambda _: None)

    def do_resign(self, id: str) -> None:
        raft = self.players[int(id)].raft
        assert raft is not None
        self.players[int(id)].step(Resign(raft.epoch))

    def do_stop(self, id: str) -> None:
        self.players[int(id)].step(ShutDown(5_000))

    def do_log(self, id: str) -> None:
        log = self.players[int(id)].disk.log
        if log.start_offset:
            self.page.append(f"begins at {log.start_offset}")
        for entry in log.entries:
            for record in read_records(entry.data):
                control: Any = read_control(record) if entry.is_control else None
                text = (record.value or b"").decode() if control is None else control.type.name.lower()
                self.page.append(f"{record.offset}: epoch {entry.epoch}, {text}")


def directory(id: int) -> bytes:
    return bytes([id]) * 16


def address(id: int) -> Address:
    return Address(LISTENER, f"node-{id}", 9000 + id)
