"""A ballot: who was asked for a vote, and what each said."""

from ottla.raft.voters import ReplicaKey, Voters


class Ballot:
    """The votes of one election, or of the question whether to hold one."""

    __slots__ = ("_voters", "granting", "rejecting")

    def __init__(self, voters: Voters, own_id: int) -> None:
        self._voters = voters
        self.granting = {own_id}
        self.rejecting: set[int] = set()

    @property
    def is_won(self) -> bool:
        """True when a majority is for it."""
        return len(self.granting) >= self._voters.majority

    @property
    def is_lost(self) -> bool:
        """True when no majority can be for it any more."""
        return len(self._voters.by_id) - len(self.rejecting) < self._voters.majority

    @property
    def undecided(self) -> list[ReplicaKey]:
        """Those who have not answered."""
        answered = self.granting | self.rejecting
        return [voter.key for id, voter in self._voters.by_id.items() if id not in answered]

    def record(self, voter_id: int, *, granted: bool) -> None:
        """Count a vote; whoever is no voter has none."""
        if voter_id in self._voters.by_id:
            (self.granting if granted else self.rejecting).add(voter_id)
            (self.rejecting if granted else self.granting).discard(voter_id)
