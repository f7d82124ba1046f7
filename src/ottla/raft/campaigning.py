"""Campaigning: what prospective voters and candidates do as time passes."""

from ottla.raft.apis import vote
from ottla.raft.asking import send
from ottla.raft.candidate import Candidate
from ottla.raft.prospective import Prospective
from ottla.raft.replica import Replica
from ottla.raft.settings import node_at


def poll_nominee(replica: Replica, now: int) -> int | None:
    """Ask for votes; give up when it takes too long.

    A candidate without a majority asks anew whether it would win, so that epochs are not used up. A node that is about
    to stop goes on with the election it has begun: the winner can be told, and if it is itself, it steps down.
    """
    role = replica.role
    assert isinstance(role, Prospective | Candidate)
    deadline = role.election_deadline
    if replica.shutdown_deadline is not None:
        deadline = replica.shutdown_deadline
    elif deadline <= now:
        if isinstance(role, Candidate):
            replica.become_prospective(now)
        else:
            vote.lose(replica, now)
        return now
    if not role.ballot.is_lost:
        for key in role.ballot.undecided:
            node = node_at(key.id, replica.voters.addresses_of(key.id), replica.settings.listener)
            if node is not None:
                send(replica, node, lambda key=key: vote.ask(replica, key), now)  # type: ignore[misc]
    waiting = replica.peers.deadline(now)
    return deadline if waiting is None else min(deadline, waiting)
