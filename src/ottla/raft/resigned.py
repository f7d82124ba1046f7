"""Resigned: the replica led its epoch and does so no more, because it stepped down or was started anew.

It tells the others, the one with the longest log first in line, and gives them the time of an election. It votes for
nobody in the epoch it led, since it had its own vote.
"""

from ottla.raft.election_state import ElectionState
from ottla.raft.voters import ReplicaKey


class Resigned:
    """A leader that stepped down."""

    __slots__ = ("election_deadline", "successors", "unaware")

    def __init__(self, election_deadline: int, successors: list[ReplicaKey], unaware: set[int]) -> None:
        self.election_deadline = election_deadline
        self.successors = successors
        self.unaware = unaware  # the voters that have not said that they know

    def grants(self, state: ElectionState, key: ReplicaKey, *, is_current: bool, is_pre_vote: bool) -> bool:
        """True when `key` may have the vote: only a pre-vote, to let others try."""
        return is_pre_vote and is_current
