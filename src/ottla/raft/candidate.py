"""Candidate: a voter that stands for election in an epoch of its own, and has voted for itself."""

from ottla.raft.ballot import Ballot
from ottla.raft.election_state import ElectionState
from ottla.raft.voters import ReplicaKey


class Candidate:
    """A voter that asks for votes."""

    __slots__ = ("ballot", "election_deadline")

    def __init__(self, ballot: Ballot, election_deadline: int) -> None:
        self.ballot = ballot
        self.election_deadline = election_deadline

    def grants(self, state: ElectionState, key: ReplicaKey, *, is_current: bool, is_pre_vote: bool) -> bool:
        """True when `key` may have the vote: it may not, but it may hear that it has a chance."""
        return is_pre_vote and is_current
