"""Raft: one replica of the metadata log. An event goes in, and what to write and to say comes out.

    ready = raft.step(event, now)      the driver writes, sends, and tells the state machine what is committed
    raft.deadline                      when a Tick is next worth giving

The protocol is KRaft's: followers fetch, the leader answers; elections are by Vote, after a pre-vote (KIP-595, 630,
853, 996). No clock is read, nothing is written and nobody is called here, so a whole quorum runs in one process from
one seed. The laws are written where they are held:

R1  leader.py       an epoch has one leader
R2  outbox.py       nothing is said in an epoch before the disk knows of it
R3  watermark.py    a committed record is never cut off
R4  outbox.py       a fetch is a receipt for what is on disk
R5  leader.py       a leader commits what is older by committing something of its own
R6  leader.py       a leader without a majority steps down
C1  voter_change.py voters change one at a time, and after a commit in the leader's epoch
"""

from collections.abc import Callable
from typing import Any

from ottla.raft.apis import (
    add_raft_voter,
    begin_quorum_epoch,
    describe_quorum,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    remove_raft_voter,
    update_raft_voter,
    vote,
)
from ottla.raft.campaigning import poll_nominee
from ottla.raft.candidate import Candidate
from ottla.raft.election_state import NOBODY
from ottla.raft.event import (
    Append,
    Event,
    Failure,
    Gone,
    Received,
    Request,
    Resign,
    Response,
    ShutDown,
    Snapshotted,
    Spoiled,
    Start,
    Synced,
    Tick,
    Trimmed,
    Upgrade,
)
from ottla.raft.follower import Follower
from ottla.raft.following import poll_follower, poll_unattached
from ottla.raft.leader import Leader
from ottla.raft.leading import append, open_epoch, poll_leader, poll_resigned
from ottla.raft.log_view import LogView, Memory
from ottla.raft.prospective import Prospective
from ottla.raft.ready import Leadership, Ready
from ottla.raft.replica import Replica
from ottla.raft.resigned import Resigned
from ottla.raft.settings import RaftSettings
from ottla.raft.unattached import Unattached
from ottla.raft.upgrade import upgrade
from ottla.raft.voters import Voters
from ottla.raft.watermark import advance, settle
from ottla.wire.batch import scan
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ottla.wire.messages.api_versions import ApiVersionsResponse
from ottla.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest
from ottla.wire.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from ottla.wire.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from ottla.wire.messages.vote import VoteRequest, VoteResponse

# A closed connection counts at once, after a moment that keeps two from standing together: a part of the fetch timeout.
DOUBT_WITHIN = 10
_GONE = (ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.NETWORK_EXCEPTION)

ANSWERS: dict[type[Message], Callable[[Replica, Request, int], Message | None]] = {
    VoteRequest: vote.answer,
    BeginQuorumEpochRequest: begin_quorum_epoch.answer,
    EndQuorumEpochRequest: end_quorum_epoch.answer,
    FetchRequest: fetch.answer,
    FetchSnapshotRequest: fetch_snapshot.answer,
    DescribeQuorumRequest: describe_quorum.answer,
    AddRaftVoterRequest: add_raft_voter.answer,
    RemoveRaftVoterRequest: remove_raft_voter.answer,
    UpdateRaftVoterRequest: update_raft_voter.answer,
}
TAKES: dict[type[Message], Callable[[Replica, int, Any, int], bool]] = {
    VoteResponse: vote.take,
    BeginQuorumEpochResponse: begin_quorum_epoch.take,
    EndQuorumEpochResponse: end_quorum_epoch.take,
    FetchResponse: fetch.take,
    FetchSnapshotResponse: fetch_snapshot.take,
    AddRaftVoterResponse: add_raft_voter.take,
    RemoveRaftVoterResponse: remove_raft_voter.take,
    UpdateRaftVoterResponse: update_raft_voter.take,
    ApiVersionsResponse: add_raft_voter.take_versions,
}
POLLS: dict[type, Callable[[Replica, int], int | None]] = {
    Unattached: poll_unattached,
    Prospective: poll_nominee,
    Candidate: poll_nominee,
    Follower: poll_follower,
    Leader: poll_leader,
    Resigned: poll_resigned,
}


class Raft:
    """One replica of the metadata log."""

    __slots__ = ("_ends", "_last_told", "deadline", "replica")

    def __init__(
        self, settings: RaftSettings, log: LogView, memory: Memory, draw: Callable[[int], int]
    ) -> None:
        """Make the replica; `draw(bound)` draws a number below the bound, for the jitter of elections."""
        self.replica = Replica(settings, log, memory, draw)
        self.deadline: int | None = None
        self._last_told = Leadership(NOBODY, 0)
        # How long the log was after each Ready that is not synced yet.
        self._ends: list[tuple[int, int]] = []

    @property
    def epoch(self) -> int:
        """The epoch."""
        return self.replica.state.epoch

    @property
    def leader_id(self) -> int:
        """Who leads, as far as is known; -1 for nobody."""
        return self.replica.state.leader_id

    @property
    def is_leader(self) -> bool:
        """True while this replica leads, and may be given batches to append."""
        return isinstance(self.replica.role, Leader)

    @property
    def standing(self) -> str:
        """What this replica is to the quorum, in the words of Kafka's metrics."""
        replica, role = self.replica, self.replica.role
        if isinstance(role, Leader):
            return "leader"
        if isinstance(role, Candidate):
            return "candidate"
        if isinstance(role, Follower):
            return "follower" if replica.is_voter else "observer"
        voted = "-voted" if replica.state.voted_id != NOBODY else ""
        if isinstance(role, Prospective):
            return "prospective" + voted
        return "unattached" + voted if isinstance(role, Unattached) else "unattached"

    @property
    def vote_id(self) -> int:
        """Whom this replica has voted for in its epoch: itself where it leads or would; -1 for nobody."""
        if isinstance(self.replica.role, Leader | Candidate):
            return self.replica.key.id
        return self.replica.state.voted_id

    @property
    def end_offset(self) -> int:
        """Where the next record goes."""
        return self.replica.outline.end_offset

    @property
    def high_watermark(self) -> int:
        """How far the log is known here to be committed; -1 while nothing is known."""
        return self.replica.high_watermark

    @property
    def voters(self) -> Voters:
        """The voters, committed or not."""
        return self.replica.voters

    @property
    def is_stopped(self) -> bool:
        """True once a replica that was told to shut down has nothing left to hand over, or no time."""
        replica = self.replica
        if replica.shutdown_deadline is None:
            return False
        led_elsewhere = replica.has_leader and replica.state.leader_id != replica.settings.node_id
        return led_elsewhere or not replica.is_voter or replica.voters.is_only(replica.key)

    def step(self, event: Event, now: int) -> Ready:
        """Let an event happen, and return what follows from it.

        BrokerError when the state machine asks for what cannot be done; nothing has changed then.
        """
        replica = self.replica
        _HAPPENS[type(event)](self, event, now)
        self._settle(now)
        self._tell()
        ready = replica.outbox.take()
        replica.written()
        if ready.is_to_sync:
            self._ends.append((ready.number, replica.outline.end_offset))
        return ready

    def _settle(self, now: int) -> None:
        """Do what is due, role after role, until one stays."""
        replica = self.replica
        while True:
            role = replica.role
            if isinstance(role, Leader) and not role.is_open:
                open_epoch(replica, now)
            deadline = POLLS[type(role)](replica, now)
            if replica.role is role:
                break
        self.deadline = deadline
        if replica.orphans:
            fetch.refuse_orphans(replica)
        if replica.dropped_change is not None:
            change, replica.dropped_change = replica.dropped_change, None
            settle(replica, change, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _tell(self) -> None:
        replica, role = self.replica, self.replica.role
        leader_id = replica.state.leader_id
        if isinstance(role, Resigned) or (isinstance(role, Leader) and not role.is_established):
            leader_id = NOBODY
        last = self._last_told
        if leader_id != last.leader_id or replica.state.epoch != last.epoch:
            self._last_told = Leadership(leader_id, replica.state.epoch)
            replica.outbox.announce(self._last_told)

    def _start(self, event: Start, now: int) -> None:
        replica = self.replica
        replica.begin(now)
        if replica.voters.is_only(replica.key) and isinstance(replica.role, Unattached | Follower | Resigned):
            replica.become_prospective(now)
        elif isinstance(replica.role, Candidate) and replica.role.ballot.is_won:
            replica.become_leader(now)

    def _tick(self, event: Tick, now: int) -> None:
        pass

    def _request(self, event: Request, now: int) -> None:
        answered = ANSWERS[type(event.message)](self.replica, event, now)
        if answered is not None:
            self.replica.outbox.reply(event.token, answered)

    def _gone(self, event: Gone, now: int) -> None:
        role = self.replica.role
        if isinstance(role, Leader):
            role.parked.drop(event.token)

    def _response(self, event: Response, now: int) -> None:
        replica, node_id, request_id = self.replica, event.node_id, event.request_id
        if replica.peers.expects(node_id, request_id):
            well = TAKES[type(event.message)](replica, node_id, event.message, now)
            replica.peers.answered(node_id, request_id, now, well=well)

    def _failure(self, event: Failure, now: int) -> None:
        replica, node_id, request_id = self.replica, event.node_id, event.request_id
        if not replica.peers.expects(node_id, request_id):
            return
        well = False
        role = replica.role
        if isinstance(role, Leader):
            # Of all that a leader asks, only the question to a new voter has somebody waiting for its end.
            add_raft_voter.take_versions(replica, node_id, ApiVersionsResponse(error_code=event.code), now)
        elif event.code == ErrorCode.UNSUPPORTED_VERSION and isinstance(role, Prospective):
            well = vote.take(replica, node_id, VoteResponse(error_code=event.code), now)
        elif event.code == ErrorCode.UNSUPPORTED_VERSION and isinstance(role, Follower):
            role.has_told_leader = True
        elif (
            event.code in _GONE
            and isinstance(role, Follower)
            and node_id == role.leader.id
            and role.has_fetched
        ):
            # Once for each leader that has proved itself: whoever is cut off alone is not to ask without end.
            role.doubt(now + replica.draw(max(1, replica.settings.fetch_timeout_ms // DOUBT_WITHIN)))
        replica.peers.answered(node_id, request_id, now, well=well)

    def _append(self, event: Append, now: int) -> None:
        if not self.is_leader:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "Only the leader appends.")
        offset = self.end_offset
        for _, batch in scan(event.data):
            if batch.base_offset != offset or batch.partition_leader_epoch != self.epoch:
                raise BrokerError(
                    ErrorCode.INVALID_RECORD, "A batch goes to the end of the log, in its epoch."
                )
            offset = batch.end_offset
        append(self.replica, event.data)

    def _synced(self, event: Synced, now: int) -> None:
        replica, role = self.replica, self.replica.role
        replica.outbox.synced = max(replica.outbox.synced, event.number)
        end_offset = -1
        while self._ends and self._ends[0][0] <= event.number:
            end_offset = self._ends.pop(0)[1]
        # What was written before it led is synced with the first record of its epoch.
        if isinstance(role, Leader) and end_offset > role.epoch_start_offset:
            role.own.end_offset = end_offset
            advance(replica)

    def _snapshotted(self, event: Snapshotted, now: int) -> None:
        replica = self.replica
        assert event.id.offset <= replica.high_watermark, "a snapshot holds committed records alone"
        replica.outline.add_snapshot(event.id)

    def _trimmed(self, event: Trimmed, now: int) -> None:
        self.replica.outline.trim(event.id)
        self.replica.membership.trim(event.id.offset)

    def _received(self, event: Received, now: int) -> None:
        replica, role, outline = self.replica, self.replica.role, self.replica.outline
        id = event.id
        if isinstance(role, Follower) and role.download is not None and role.download.id == id:
            role.download = None
        # No leader lacks what is committed, so none is ever overtaken by a snapshot.
        if not isinstance(role, Leader) and (id.epoch, id.offset) > (outline.last_epoch, outline.end_offset):
            replica.install(id, event.kraft_version, event.voters)
            replica.commit(id.offset)

    def _spoiled(self, event: Spoiled, now: int) -> None:
        role = self.replica.role
        if isinstance(role, Follower) and role.download is not None and role.download.id == event.id:
            role.download = None

    def _resign(self, event: Resign, now: int) -> None:
        role = self.replica.role
        if isinstance(role, Leader) and event.epoch == self.epoch:
            role.resigns = True

    def _shut_down(self, event: ShutDown, now: int) -> None:
        self.replica.shutdown_deadline = now + event.timeout_ms

    def _upgrade(self, event: Upgrade, now: int) -> None:
        upgrade(self.replica, event, now)


_HAPPENS: dict[type, Callable[[Raft, Any, int], None]] = {
    Start: Raft._start,
    Tick: Raft._tick,
    Request: Raft._request,
    Gone: Raft._gone,
    Response: Raft._response,
    Failure: Raft._failure,
    Append: Raft._append,
    Synced: Raft._synced,
    Snapshotted: Raft._snapshotted,
    Trimmed: Raft._trimmed,
    Received: Raft._received,
    Spoiled: Raft._spoiled,
    Resign: Raft._resign,
    ShutDown: Raft._shut_down,
    Upgrade: Raft._upgrade,
}
