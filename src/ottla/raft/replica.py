"""A replica: what it remembers and knows, and how it passes from role to role.

                        higher epoch, or nobody answered: become_unattached()
      +---------------------------------------------------------------------------+
      v                                                                           |
  UNATTACHED --become_prospective()--> PROSPECTIVE --become_candidate()--> CANDIDATE --become_leader()--> LEADER
      |  ^                               ^   |  ^                             |                             |
      |  +---- lost, no leader known ----|---+  +---- out of time ------------+           become_resigned() |
      |                                  |                                                                  v
      +--become_follower()--> FOLLOWER --+ fetch timed out                       RESIGNED --become_unattached()--> ...

  Every role becomes a follower where somebody is known to lead its epoch or a higher one.

The election state is the one thing that is remembered over a crash. Roles hold what may be forgotten.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.raft.ballot import Ballot
from ottla.raft.candidate import Candidate
from ottla.raft.election_state import NOBODY, ElectionState
from ottla.raft.follower import Follower
from ottla.raft.leader import Leader
from ottla.raft.log_view import Buffer, LogView, Memory
from ottla.raft.outbox import Outbox
from ottla.raft.peers import Peers
from ottla.raft.progress import UNKNOWN
from ottla.raft.prospective import Prospective
from ottla.raft.resigned import Resigned
from ottla.raft.settings import Node, RaftSettings, node_at
from ottla.raft.snapshot import SnapshotId
from ottla.raft.unattached import Unattached
from ottla.raft.voters import Address, ReplicaKey, Voters
from ottla.wire.batch import scan

if TYPE_CHECKING:
    from ottla.raft.parking import Parked
    from ottla.raft.voter_change import VoterChange

Role = Unattached | Prospective | Candidate | Follower | Leader | Resigned


class Replica:
    """One replica of the log."""

    __slots__ = (
        "_draw",
        "_log",
        "_written_offset",
        "dropped_change",
        "high_watermark",
        "leader_addresses",
        "membership",
        "orphans",
        "outbox",
        "outline",
        "peers",
        "role",
        "settings",
        "shutdown_deadline",
        "state",
    )

    def __init__(
        self, settings: RaftSettings, log: LogView, memory: Memory, draw: Callable[[int], int]
    ) -> None:
        self.settings = settings
        self.state, self.outline, self.membership = memory
        self._log = log
        self._draw = draw
        self.peers = Peers(settings.request_timeout_ms, settings.retry_backoff_ms)
        self.outbox = Outbox()
        self.role: Role = Unattached(None)
        self.leader_addresses: tuple[Address, ...] = ()
        self.high_watermark = UNKNOWN  # as far as this replica knows; it never falls
        self.shutdown_deadline: int | None = None
        # Of a lead that has ended: who still waits for an answer.
        self.orphans: list[Parked] = []
        self.dropped_change: VoterChange | None = None
        self._written_offset = self.outline.end_offset

    @property
    def epoch(self) -> int:
        """The epoch."""
        return self.state.epoch

    @property
    def key(self) -> ReplicaKey:
        """The copy that this replica is."""
        return self.settings.key

    @property
    def voters(self) -> Voters:
        """The voters, committed or not."""
        return self.membership.voters

    @property
    def is_voter(self) -> bool:
        """True when this copy is a voter."""
        return self.membership.voters.has(self.settings.key)

    @property
    def has_leader(self) -> bool:
        """True when somebody is known to lead the epoch."""
        return self.state.leader_id != NOBODY

    @property
    def leader(self) -> Leader:
        """The role of a leader, for those who know that it is one."""
        assert isinstance(self.role, Leader)
        return self.role

    def acquaintances(self) -> list[Node]:
        """Whom to ask who leads: the nodes of the settings, and the voters that the log names."""
        settings = self.settings
        found = {node.id: node for node in settings.bootstrap}
        for id, voter in self.voters.by_id.items():
            node = node_at(id, voter.addresses, settings.listener)
            if node is not None:
                found[id] = node
        found.pop(settings.node_id, None)
        return list(found.values())

    # Passing from role to role.

    def begin(self, now: int) -> None:
        """Take the role that the election state asks for.

        Whoever led an epoch never leads it again: what it wrote in it may be lost, and others may have it. Whoever
        stood for election goes on, since its vote is its own.
        """
        state, outline = self.state, self.outline
        if state.epoch < outline.last_epoch:
            # The file is older than the log: what it promised was for an epoch that has passed.
            self._remember(ElectionState(outline.last_epoch))
            self.role = Unattached(self._election_deadline(now))
        elif state.leader_id == self.settings.node_id:
            self.become_resigned([], now)
        elif state.leader_id != NOBODY:
            addresses = self.voters.addresses_of(state.leader_id)
            leader = node_at(state.leader_id, addresses, self.settings.listener)
            if leader is None:
                self.role = Unattached(self._election_deadline(now))
            else:
                self.leader_addresses = addresses
                self.role = Follower(leader, now, self.settings.fetch_timeout_ms)
        elif state.has_voted_for(self.key) and self.is_voter and outline.last_epoch < state.epoch:
            self.role = Candidate(self._new_ballot(), self._election_deadline(now))
        else:
            self.role = Unattached(self._election_deadline(now))

    def become_unattached(self, epoch: int, leader_id: int, now: int) -> None:
        """Follow nobody, in a higher epoch; or in the same one, after finding out that an election would be lost."""
        assert epoch > self.epoch or (epoch == self.epoch and isinstance(self.role, Prospective))
        role = self.role
        deadline: int | None = None
        if self.is_voter:
            if isinstance(role, Candidate | Unattached | Resigned) or (
                isinstance(role, Prospective) and not role.ballot.is_lost
            ):
                # An election that goes on elsewhere buys nobody more time.
                deadline = role.election_deadline
            if deadline is None:
                deadline = self._election_deadline(now)
        self._leave()
        self._remember(self._in_epoch(epoch, leader_id))
        self.leader_addresses = ()
        self.role = Unattached(deadline)

    def become_follower(self, epoch: int, leader_id: int, addresses: tuple[Address, ...], now: int) -> bool:
        """Follow the leader of an epoch; False when it cannot be reached at these addresses."""
        assert leader_id != self.settings.node_id, "nobody follows itself"
        assert epoch >= self.epoch
        assert epoch > self.epoch or not isinstance(self.role, Leader), "an epoch has one leader"
        leader = node_at(leader_id, addresses, self.settings.listener)
        if leader is None:
            return False
        self._leave()
        self._remember(self._in_epoch(epoch, leader_id))
        self.leader_addresses = addresses
        self.role = Follower(leader, now, self.settings.fetch_timeout_ms)
        return True

    def become_prospective(self, now: int) -> None:
        """Ask whether an election could be won; the only voter need not ask anybody."""
        assert self.is_voter
        self._leave()
        self.role = Prospective(self._new_ballot(), self._election_deadline(now))
        if self.role.ballot.is_won:
            self.become_candidate(now)

    def become_candidate(self, now: int) -> None:
        """Stand for election in the next epoch."""
        assert self.is_voter
        assert isinstance(self.role, Prospective)
        self._leave()
        self._remember(ElectionState(self.epoch + 1, NOBODY, *self.key))
        self.leader_addresses = ()
        self.role = Candidate(self._new_ballot(), self._election_deadline(now))
        if self.role.ballot.is_won:
            self.become_leader(now)

    def become_leader(self, now: int) -> None:
        """Lead the epoch that was won. Its first record is for the caller to write."""
        assert isinstance(self.role, Candidate)
        assert self.role.ballot.is_won
        settings = self.settings
        granting = self.role.ballot.granting
        self._leave()
        self._remember(ElectionState(self.epoch, settings.node_id))
        self.leader_addresses = settings.addresses
        self.role = Leader(
            self.key, self.voters, granting, self.outline.end_offset, now, settings.fetch_timeout_ms
        )
        if not self.membership.can_change:
            self.role.told_voters = self.voters.changed(settings.voter, any_directory=True)

    def become_resigned(self, successors: list[ReplicaKey], now: int) -> None:
        """Lead no longer, and let others try."""
        assert self.state.leader_id == self.settings.node_id
        self._leave()
        self.leader_addresses = self.settings.addresses
        unaware = self.voters.by_id.keys() - {self.settings.node_id}
        self.role = Resigned(self._election_deadline(now), successors, set(unaware))

    def disown(self, epoch: int, now: int) -> None:
        """Take note that this replica is said to lead an epoch it knows nothing of: it has lost its memory.

        It must have had its own vote there, so it takes no part in that epoch.
        """
        self._leave()
        self._remember(ElectionState(epoch, self.settings.node_id))
        self.become_resigned([], now)

    def vote(self, key: ReplicaKey, now: int) -> None:
        """Give the vote of this epoch. Whoever has a better log has the better chance, so it gets time."""
        role = self.role
        assert isinstance(role, Unattached | Prospective)
        assert self.state.voted_id == NOBODY, "a vote is given once an epoch"
        self._remember(self.state._replace(voted_id=key.id, voted_directory_id=key.directory_id))
        role.election_deadline = self._election_deadline(now)
        if isinstance(role, Prospective):
            role.ballot = self._new_ballot()

    # The log.

    def append(self, data: bytes | bytearray) -> None:
        """Append batches that go on where the log ends."""
        outline, membership = self.outline, self.membership
        for position, batch in scan(data):
            assert batch.base_offset == outline.end_offset, "batches follow one another without a gap"
            outline.append(batch.end_offset, batch.partition_leader_epoch)
            membership.read(data, position, batch)
        self.outbox.append(data)

    def truncate(self, end_offset: int) -> None:
        """Cut the log; what is committed stays (R3)."""
        assert end_offset >= self.high_watermark, "a committed record is never cut off"
        self.outline.truncate(end_offset)
        self.membership.truncate(end_offset)
        self.outbox.truncate(end_offset)

    def install(self, id: SnapshotId, kraft_version: int, voters: Voters | None) -> None:
        """Replace the log by a snapshot that goes further."""
        self.outline.reset(id)
        self.membership.load(id.offset - 1, kraft_version, voters)
        self.outbox.reset(id)

    def read(self, offset: int, size_bytes_max: int) -> Buffer:
        """Batches to send to others."""
        if offset >= self.outline.end_offset:
            return b""
        if offset >= self._written_offset:
            return self.outbox.read(offset, size_bytes_max)
        return self._log.read(offset, size_bytes_max)

    @property
    def log(self) -> LogView:
        """The log, for its snapshots."""
        return self._log

    def commit(self, end_offset: int) -> None:
        """Note how far the log is committed, as far as it is here."""
        end_offset = min(end_offset, self.outline.end_offset)
        if end_offset > self.high_watermark:
            self.high_watermark = end_offset
            self.outbox.commit(end_offset)

    def written(self) -> None:
        """Note that a step is over: the driver writes what it appended."""
        self._written_offset = self.outline.end_offset

    def draw(self, bound: int) -> int:
        """Draw a number below `bound`."""
        return self._draw(bound)

    def _new_ballot(self) -> Ballot:
        return Ballot(self.voters, self.settings.node_id)

    def _election_deadline(self, now: int) -> int:
        timeout_ms = self.settings.election_timeout_ms
        return now + timeout_ms + (self._draw(timeout_ms) if timeout_ms else 0)

    def _in_epoch(self, epoch: int, leader_id: int) -> ElectionState:
        """The state in an epoch; within the same one, a vote stays given (Q2)."""
        if epoch > self.epoch:
            return ElectionState(epoch, leader_id)
        return self.state._replace(leader_id=leader_id)

    def _remember(self, state: ElectionState) -> None:
        if state != self.state:
            self.state = state
            self.outbox.save(state)

    def _leave(self) -> None:
        role = self.role
        if isinstance(role, Leader):
            self.orphans += role.parked.take_all()
            self.dropped_change = role.change
        self.peers.forget_all()
