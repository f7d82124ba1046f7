"""Unattached: the replica knows an epoch, and nobody to follow in it.

It asks around who leads. A voter that finds nobody in time asks whether it could win an election.
"""

from ottla.raft.election_state import NOBODY, ElectionState
from ottla.raft.voters import ReplicaKey


class Unattached:
    """A replica without a leader."""

    __slots__ = ("election_deadline",)

    def __init__(self, election_deadline: int | None) -> None:
        self.election_deadline = election_deadline  # None for observers, who elect nobody

    def grants(self, state: ElectionState, key: ReplicaKey, *, is_current: bool, is_pre_vote: bool) -> bool:
        """True when `key` may have the vote; `is_current` when its log has all that ours has."""
        return grants_freely(state, key, is_current=is_current, is_pre_vote=is_pre_vote)


def grants_freely(state: ElectionState, key: ReplicaKey, *, is_current: bool, is_pre_vote: bool) -> bool:
    """How a replica votes that follows nobody.

    A pre-vote promises nothing, so it depends on the log alone. A vote is given once an epoch, and not where somebody
    is known to have been elected; whoever has it may ask again.
    """
    if is_pre_vote:
        return is_current
    if state.voted_id != NOBODY:
        return state.has_voted_for(key)
    return state.leader_id == NOBODY and is_current
