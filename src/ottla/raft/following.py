"""Following: what followers, observers and those without a leader do as time passes.

A voter that hears nothing of its leader asks whether it could win. An observer never does. Whoever cannot reach its
leader asks any other node who leads by now.
"""

from ottla.raft.apis import add_raft_voter, fetch, fetch_snapshot, remove_raft_voter, update_raft_voter
from ottla.raft.asking import send
from ottla.raft.follower import Follower
from ottla.raft.replica import Replica
from ottla.raft.unattached import Unattached


def poll_unattached(replica: Replica, now: int) -> int | None:
    """Ask around who leads; a voter whose time is up asks for votes instead."""
    role = replica.role
    assert isinstance(role, Unattached)
    if not replica.is_voter:
        return _ask_anybody(replica, now)
    if replica.shutdown_deadline is not None:
        return replica.shutdown_deadline
    if role.election_deadline is None or role.election_deadline <= now:
        replica.become_prospective(now)
        return now
    waiting = _ask_anybody(replica, now)
    return role.election_deadline if waiting is None else min(role.election_deadline, waiting)


def poll_follower(replica: Replica, now: int) -> int | None:
    """Fetch from the leader; and see to it that the voters name this replica as it is."""
    role = replica.role
    assert isinstance(role, Follower)
    if replica.shutdown_deadline is not None:
        return None
    if replica.is_voter:
        if role.fetch_deadline <= now:
            replica.become_prospective(now)
            return now
        if role.update_deadline <= now and not _tell_leader(replica, role, now):
            role.update_deadline = now + replica.settings.fetch_timeout_ms
    elif role.update_deadline <= now and not _join(replica, role, now):
        role.update_deadline = now + replica.settings.fetch_timeout_ms
    _fetch(replica, role, now)
    deadlines = [replica.peers.deadline(now), role.update_deadline if role.update_deadline > now else None]
    if replica.is_voter:
        deadlines.append(role.fetch_deadline)
    return min((each for each in deadlines if each is not None), default=None)


def _fetch(replica: Replica, role: Follower, now: int) -> None:
    peers, leader = replica.peers, role.leader
    if role.download is not None and role.download.is_whole:
        return  # it is being put on disk
    if peers.has_timed_out(leader.id, now):
        peers.forget(leader.id)
        _ask_anybody(replica, now)
    elif peers.is_backing_off(leader.id, now):
        _ask_anybody(replica, now)
    elif not peers.is_any_under_way(now):
        download = role.download
        if download is not None:
            send(replica, leader, lambda: fetch_snapshot.ask(replica, download), now)
        else:
            send(replica, leader, lambda: fetch.ask(replica), now)


def _ask_anybody(replica: Replica, now: int) -> int | None:
    node = replica.peers.find_ready(replica.acquaintances(), now, replica.draw)
    if node is not None:
        send(replica, node, lambda: fetch.ask(replica), now)
    return replica.peers.deadline(now)


def _tell_leader(replica: Replica, role: Follower, now: int) -> bool:
    """True while the leader has yet to be told of our addresses and versions."""
    membership, settings = replica.membership, replica.settings
    if membership.can_change:
        is_due = membership.voters.differs_on(settings.voter)
    else:
        # Nothing stands in the log, so each leader is told, and can write it there when kraft.version is raised.
        is_due = not role.has_told_leader
    if not is_due:
        return False
    if not replica.peers.is_any_under_way(now) and send(
        replica, role.leader, lambda: update_raft_voter.ask(replica), now
    ):
        role.update_deadline = now + settings.fetch_timeout_ms
    return True


def _join(replica: Replica, role: Follower, now: int) -> bool:
    """True while the leader has yet to be asked to make this replica a voter."""
    settings = replica.settings
    if not (replica.membership.can_change and settings.can_vote and settings.auto_join):
        return False
    if replica.peers.is_any_under_way(now):
        return True
    known = replica.voters.by_id.get(settings.node_id)
    if known is not None:
        # Our node is a voter with a directory that is gone: that one has to go first.
        sent = send(replica, role.leader, lambda: remove_raft_voter.ask(replica, known.key), now)
    else:
        sent = send(replica, role.leader, lambda: add_raft_voter.ask(replica), now)
    if sent:
        role.update_deadline = now + settings.fetch_timeout_ms
    return True
