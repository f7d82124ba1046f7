"""Bugs, put back on purpose. Each was in somebody's Raft once, or is one line away from being in ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from ottla.raft.apis import add_raft_voter, fetch, remove_raft_voter, update_raft_voter, vote
from ottla.raft.election_state import NOBODY, ElectionState
from ottla.raft.leader import Leader
from ottla.raft.membership import Membership
from ottla.raft.outbox import Outbox
from ottla.raft.outline import End, Fit, Outline
from ottla.raft.progress import UNKNOWN
from ottla.raft.raft import Raft
from ottla.raft.ready import Leadership, Ready
from ottla.raft.replica import Replica
from ottla.raft.snapshot import SnapshotId
from ottla.raft.voters import Voter, Voters
from ottla.sim.quorum.disk import QuorumDisk
from ottla.sim.quorum.log import SimLog

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Mutation:
    """A bug, the scenario in which it shows, and what it breaks there."""

    name: str
    put_in: Callable[[Patch], None]
    scenario: str
    rules: tuple[str, ...]  # of the laws that it may break
    seeds: int = 60


def votes_for_any_log(patch: Patch) -> None:
    """A vote is given without looking at the candidate's log (Raft, §5.4.1)."""
    patch.setattr(vote, "is_current", lambda replica, end_offset, last_epoch: True)


def votes_twice(patch: Patch) -> None:
    """A vote is given, and forgotten at once."""
    patch.setattr(Replica, "vote", lambda self, key, now: None)


def speaks_before_state_is_synced(patch: Patch) -> None:
    """The answer leaves while the vote is still on its way to the disk."""
    real = Outbox.take

    def take(self: Outbox) -> Ready:
        ready = real(self)
        ready.send_now, ready.send_after_sync = [*ready.send_now, *ready.send_after_sync], []
        return ready

    patch.setattr(Outbox, "take", take)


def fetches_before_log_is_synced(patch: Patch) -> None:
    """A follower gives a receipt for records that are still on their way to the disk."""
    real = Outbox.take

    def take(self: Outbox) -> Ready:
        self._log_number = 0
        state_waits = self._ready.state is not None or self._state_number > self.synced
        ready = real(self)
        if not state_waits:
            ready.send_now, ready.send_after_sync = [*ready.send_now, *ready.send_after_sync], []
        return ready

    patch.setattr(Outbox, "take", take)


def leader_counts_unsynced(patch: Patch) -> None:
    """A leader counts its own copy before it is on disk."""
    real = Replica.append

    def append(self: Replica, data: bytes | bytearray) -> None:
        real(self, data)
        if isinstance(self.role, Leader):
            self.role.own.end_offset = self.outline.end_offset

    patch.setattr(Replica, "append", append)


def commits_older_epochs_by_count(patch: Patch) -> None:
    """Records of older epochs count as committed when enough copies exist (Raft, figure 8)."""

    def advance(self: Leader) -> bool:
        offsets = sorted((progress.end_offset for progress in self.voters.values()), reverse=True)
        offset = offsets[len(offsets) // 2]
        if offset == UNKNOWN or offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        return True

    patch.setattr(Leader, "advance", advance)


def truncates_to_watermark(patch: Patch) -> None:
    """A follower cuts its log to the watermark it knows when the leader changes (before KIP-101)."""
    real = Replica.become_follower

    def become_follower(self: Replica, epoch: int, leader_id: int, addresses: Any, now: int) -> bool:
        is_new = epoch > self.epoch
        followed = real(self, epoch, leader_id, addresses, now)
        known = max(self.high_watermark, self.outline.start_offset, 0)
        if followed and is_new and self.outline.end_offset > known:
            self.truncate(known)
        return followed

    patch.setattr(Replica, "become_follower", become_follower)


def serves_by_offset_alone(patch: Patch) -> None:
    """A leader serves every offset that it has, whatever epoch the follower's log ends in (before KIP-320)."""
    real = Outline.fit

    def fit(self: Outline, offset: int, epoch: int) -> tuple[Fit, End]:
        if self.start_offset <= offset <= self.end_offset:
            return Fit.VALID, End(offset, epoch)
        return real(self, offset, epoch)

    def append(replica: Replica, records: bytes) -> bool:
        if records:
            replica.append(bytes(records))
        return True

    patch.setattr(Outline, "fit", fit)
    patch.setattr(fetch, "append", append)


def changes_voters_before_own_commit(patch: Patch) -> None:
    """A new leader changes the voters before it has committed anything (the flaw found after Raft's publication)."""

    def refuse(replica: Replica) -> None:
        return None if replica.leader.change is None else real(replica)

    real = remove_raft_voter.refuse_change
    for module in (add_raft_voter, remove_raft_voter, update_raft_voter):
        patch.setattr(module, "refuse_change", refuse)


def changes_two_voters_at_once(patch: Patch) -> None:
    """Another change begins while one is under way."""

    def refuse(replica: Replica) -> Any:
        return real(replica) if not replica.leader.is_established else None

    real = remove_raft_voter.refuse_change
    for module in (add_raft_voter, remove_raft_voter, update_raft_voter):
        patch.setattr(module, "refuse_change", refuse)


def leads_before_own_commit(patch: Patch) -> None:
    """A leader is told that it leads as soon as it is elected (redpanda#5090)."""

    def tell(self: Raft) -> None:
        told = Leadership(self.leader_id, self.epoch)
        if told != self._last_told:
            self._last_told = told
            self.replica.outbox.announce(told)

    patch.setattr(Raft, "_tell", tell)


def never_steps_down(patch: Patch) -> None:
    """A leader does not notice that nobody follows it."""
    patch.setattr(Leader, "has_lost_majority", lambda self, now: False)


def stands_without_asking(patch: Patch) -> None:
    """Elections are held without a pre-vote (before KIP-996)."""
    real = Replica.become_prospective

    def become_prospective(self: Replica, now: int) -> None:
        real(self, now)
        if type(self.role).__name__ == "Prospective":
            self.become_candidate(now)

    patch.setattr(Replica, "become_prospective", become_prospective)


def leads_again_after_crash(patch: Patch) -> None:
    """Whoever led an epoch goes on to lead it after a crash, with the log that is left."""
    real = Replica.begin

    def begin(self: Replica, now: int) -> None:
        real(self, now)
        if self.state.leader_id == self.settings.node_id and self.is_voter:
            self.role = Leader(self.key, self.voters, {self.key.id}, self.outline.end_offset, now, 2_000)

    patch.setattr(Replica, "begin", begin)


def forgets_vote_within_epoch(patch: Patch) -> None:
    """Passing from role to role within an epoch forgets the vote."""
    real = Replica._in_epoch

    def in_epoch(self: Replica, epoch: int, leader_id: int) -> ElectionState:
        return real(self, epoch, leader_id)._replace(voted_id=NOBODY, voted_directory_id=bytes(16))

    patch.setattr(Replica, "_in_epoch", in_epoch)


def ignores_directories(patch: Patch) -> None:
    """A voter that lost its disk counts as the voter it was (before KIP-853)."""
    patch.setattr(Voter, "is_copy", lambda self, key: self.id == key.id)
    patch.setattr("ottla.raft.leader._is_copy", lambda known, key: known.id == key.id)
    patch.setattr(vote, "is_meant", lambda replica, voter_id, directory_id: True)


def snapshot_forgets_voters(patch: Patch) -> None:
    """A snapshot is loaded without the voters it names."""
    real = Membership.load

    def load(self: Membership, last_offset: int, kraft_version: int, voters: Voters | None) -> None:
        real(self, last_offset, kraft_version, voters if last_offset < 0 else None)

    patch.setattr(Membership, "load", load)


def commits_beyond_its_log(patch: Patch) -> None:
    """A follower takes the leader's watermark for its own, though its log ends before it."""

    def commit(self: Replica, end_offset: int) -> None:
        if end_offset > self.high_watermark:
            self.high_watermark = end_offset
            self.outbox.commit(end_offset)

    patch.setattr(Replica, "commit", commit)


def keeps_removed_leader(patch: Patch) -> None:
    """A leader that is no voter any more counts its own copy."""

    def advance(self: Leader) -> bool:
        copies = {progress.key: progress for progress in self.voters.values()}
        copies[self.own.key] = self.own
        offsets = sorted((progress.end_offset for progress in copies.values()), reverse=True)
        offset = offsets[len(self.voters) // 2]
        if offset <= self.epoch_start_offset or offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        return True

    patch.setattr(Leader, "advance", advance)


def keeps_voters_that_were_cut_off(patch: Patch) -> None:
    """A follower goes on to count by voters whose record was cut off its log (Raft, §6)."""
    patch.setattr(Membership, "truncate", lambda self, end_offset: None)


def loses_quorum_state(patch: Patch) -> None:
    """A disk loses `quorum-state`, though it was synced."""
    real = QuorumDisk.lose_power

    def lose_power(self: QuorumDisk, entropy: Any, *, tears: bool) -> None:
        real(self, entropy, tears=tears)
        self.state = None

    patch.setattr(QuorumDisk, "lose_power", lose_power)


def removes_snapshot_with_log(patch: Patch) -> None:
    """The log is removed up to a snapshot, and the snapshot with it."""
    real = SimLog.trim

    def trim(self: SimLog, id: SnapshotId) -> None:
        real(self, id)
        self.snapshots.pop(id, None)

    patch.setattr(SimLog, "trim", trim)


def believes_torn_batches(patch: Patch) -> None:
    """Recovery takes a batch for sound without looking at its checksum."""
    patch.setattr("ottla.sim.quorum.log.crc_ok", lambda data, position, size: True)


COMPLETE = "a leader has all that is committed"
DATA = "consistent committed data"
INFORMED = "a leader knows all that is committed before it decides"
MAJORITY = "a majority has what is committed on disk"
R1, R2 = "R1 one leader an epoch", "R2 synced before said"
R3, R6 = "R3 a committed record is never cut off", "R6 a leader without a majority steps down"
OUTLINE = "the outline is that of the log"
VOTERS = "the voters are those of the log"
WATERMARK = "the high watermark never falls"

MUTATIONS = (
    Mutation("votes for any log", votes_for_any_log, "torn-disks", (COMPLETE,)),
    Mutation("votes twice", votes_twice, "first-election", (R1, R2)),
    Mutation("speaks before the state is synced", speaks_before_state_is_synced, "first-election", (R2,)),
    Mutation("fetches before the log is synced", fetches_before_log_is_synced, "first-election", (R2,)),
    Mutation("leader counts what is not synced", leader_counts_unsynced, "torn-disks", (MAJORITY,)),
    Mutation(
        "commits older epochs by count",
        commits_older_epochs_by_count,
        "leader-failure",
        (WATERMARK, INFORMED),
    ),
    Mutation("truncates to the watermark", truncates_to_watermark, "leaders-in-turn", (R3,)),
    Mutation(
        "serves by offset alone",
        serves_by_offset_alone,
        "leaders-in-turn",
        (DATA, MAJORITY, OUTLINE),
    ),
    Mutation(
        "changes voters before its own commit",
        changes_voters_before_own_commit,
        "racing-changes",
        (COMPLETE,),
    ),
    Mutation(
        "changes two voters at once", changes_two_voters_at_once, "membership", (COMPLETE, DATA, "progress")
    ),
    Mutation("leads before its own commit", leads_before_own_commit, "leader-failure", (INFORMED,)),
    Mutation("never steps down", never_steps_down, "leader-cut-off", (R6,)),
    Mutation("stands without asking", stands_without_asking, "deaf-follower", ("pre-vote",)),
    Mutation("leads again after a crash", leads_again_after_crash, "torn-disks", (R1,)),
    Mutation("forgets its vote within an epoch", forgets_vote_within_epoch, "torn-disks", (R1, R2)),
    Mutation("ignores directories", ignores_directories, "replaced-disk", (COMPLETE, DATA, R1)),
    Mutation("a snapshot forgets the voters", snapshot_forgets_voters, "snapshots", (VOTERS, "progress")),
    Mutation("commits beyond its log", commits_beyond_its_log, "first-election", (WATERMARK,)),
    Mutation("a removed leader counts itself", keeps_removed_leader, "membership", (MAJORITY,), 200),
    Mutation(
        "voters are not cut off with the log", keeps_voters_that_were_cut_off, "racing-changes", (VOTERS,)
    ),
    Mutation("loses quorum-state", loses_quorum_state, "torn-disks", ("epochs only grow", R1)),
    Mutation(
        "removes a snapshot with the log",
        removes_snapshot_with_log,
        "snapshots",
        ("a log begins where a snapshot ends",),
    ),
    Mutation(
        "believes torn batches",
        believes_torn_batches,
        "torn-disks",
        (DATA, "ProtocolError", "AssertionError"),
    ),
)
