"""Leading: what a leader writes, and what it does as time passes; and what one does that has stepped down."""

from ottla.raft.apis import begin_quorum_epoch, end_quorum_epoch, fetch
from ottla.raft.asking import send
from ottla.raft.election_state import NOBODY
from ottla.raft.membership import BEFORE_THE_LOG
from ottla.raft.replica import Replica
from ottla.raft.resigned import Resigned
from ottla.raft.settings import node_at
from ottla.raft.voters import Voters
from ottla.raft.watermark import advance, settle, wake
from ottla.wire.control import quorum_batch
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.control import KRaftVersionRecord, LeaderChangeMessage, VotersRecord

Control = LeaderChangeMessage | KRaftVersionRecord | VotersRecord


def append(replica: Replica, data: bytes | bytearray) -> None:
    """Write batches, and send them on to whoever waits."""
    leader, voters = replica.leader, replica.voters
    replica.append(data)
    if replica.voters is not voters:
        leader.adopt(replica.voters)
        advance(replica)
    wake(replica)


def append_controls(replica: Replica, controls: list[Control], now: int) -> int:
    """Write records of the quorum's own, and return the offset of the first."""
    offset = replica.outline.end_offset
    append(replica, quorum_batch(controls, timestamp_ms=now, base_offset=offset, leader_epoch=replica.epoch))
    return offset


def append_voters(replica: Replica, voters: Voters, now: int) -> int:
    """Write down other voters, who count from now on, and return the offset of the record."""
    return append_controls(replica, [voters.record()], now)


def open_epoch(replica: Replica, now: int) -> None:
    """Write the first record of an epoch, so that what is older can be committed.

    Where voters can change, the leader also writes them down if no record has named them yet, or if it moved itself.
    """
    leader, membership, settings = replica.leader, replica.membership, replica.settings
    leader.is_open = True
    voters = membership.voters
    controls: list[Control] = [voters.leader_change(settings.node_id, sorted(leader.granting))]
    if membership.can_change and (
        membership.voters_offset == BEFORE_THE_LOG or voters.differs_on(settings.voter)
    ):
        written = voters.changed(settings.voter)
        assert written is not None
        controls += [KRaftVersionRecord(kraft_version=membership.kraft_version), written.record()]
    append_controls(replica, controls, now)


def poll_leader(replica: Replica, now: int) -> int | None:
    """Do what is due as a leader; return when the next thing is."""
    leader = replica.leader
    if leader.resigns or replica.shutdown_deadline is not None or leader.has_lost_majority(now):
        replica.become_resigned(leader.successors(), now)
        return now
    expire_change(replica, now)
    fetch.expire(replica, now)
    if leader.begin_deadline <= now:
        for key in leader.silent(now):
            node = node_at(key.id, replica.voters.addresses_of(key.id), replica.settings.listener)
            if node is not None:
                send(replica, node, lambda key=key: begin_quorum_epoch.ask(replica, key), now)  # type: ignore[misc]
        leader.begin_deadline = now + leader.begin_interval_ms
    deadlines = [leader.begin_deadline]
    if (waits_until := leader.parked.deadline) is not None:
        deadlines.append(waits_until)
    if len(leader.voters) > 1:
        deadlines.append(leader.check_deadline)
    if leader.change is not None:
        deadlines.append(leader.change.deadline)
    return min(deadlines)


def expire_change(replica: Replica, now: int) -> None:
    """Give up on a change of voters that takes too long. Its record may still be committed."""
    change = replica.leader.change
    if change is not None and change.deadline <= now:
        replica.leader.change = None
        settle(replica, change, ErrorCode.REQUEST_TIMED_OUT, "The change was not committed in time.")


def poll_resigned(replica: Replica, now: int) -> int | None:
    """Tell the voters, and take part again once they had the time of an election."""
    role = replica.role
    assert isinstance(role, Resigned)
    if role.election_deadline <= now and replica.shutdown_deadline is None:
        # In another epoch: in this one, the leader would be itself.
        replica.become_unattached(replica.epoch + 1, NOBODY, now)
        return now
    for id in sorted(role.unaware):
        node = node_at(id, replica.voters.addresses_of(id), replica.settings.listener)
        if node is not None:
            send(replica, node, lambda: end_quorum_epoch.ask(replica, role.successors), now)
    if replica.shutdown_deadline is not None:
        return _earlier(replica.shutdown_deadline, replica.peers.deadline(now))
    return _earlier(role.election_deadline, replica.peers.deadline(now))


def _earlier(deadline: int, other: int | None) -> int:
    return deadline if other is None else min(deadline, other)
