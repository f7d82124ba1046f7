"""Prospective: a voter that asks whether it could win, before it disturbs anybody (KIP-996).

Its epoch stays as it was. With a majority of pre-votes it becomes a candidate; else it goes back to where it came from.
"""

from ottla.raft.ballot import Ballot
from ottla.raft.election_state import ElectionState
from ottla.raft.unattached import grants_freely
from ottla.raft.voters import ReplicaKey


class Prospective:
    """A voter that might stand for election."""

    __slots__ = ("ballot", "election_deadline")

    def __init__(self, ballot: Ballot, election_deadline: int) -> None:
        self.ballot = ballot
        self.election_deadline = election_deadline

    def grants(self, state: ElectionState, key: ReplicaKey, *, is_current: bool, is_pre_vote: bool) -> bool:
        """True when `key` may have the vote: nothing was promised yet, not even to itself."""
        return grants_freely(state, key, is_current=is_current, is_pre_vote=is_pre_vote)
