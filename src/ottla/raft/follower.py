"""Follower: the replica knows who leads its epoch, and fetches from there.

Each good fetch puts off the moment at which a voter doubts its leader. A snapshot that has to be fetched first stops
the fetching of records until it is here.
"""

from typing import TYPE_CHECKING

from ottla.raft.election_state import ElectionState
from ottla.raft.settings import Node
from ottla.raft.voters import ReplicaKey

if TYPE_CHECKING:
    from ottla.raft.snapshot import Download


class Follower:
    """A replica with a leader."""

    __slots__ = (
        "download",
        "fetch_deadline",
        "has_fetched",
        "has_told_leader",
        "leader",
        "update_deadline",
    )

    def __init__(self, leader: Node, now: int, fetch_timeout_ms: int) -> None:
        self.leader = leader
        self.fetch_deadline = now + fetch_timeout_ms
        # A few rounds of fetching come first, before the leader is bothered with who we are.
        self.update_deadline = now + fetch_timeout_ms
        self.has_fetched = False
        self.has_told_leader = False  # of our addresses and versions, where they do not stand in the log
        self.download: Download | None = None

    def heard(self, now: int, fetch_timeout_ms: int) -> None:
        """Note that the leader answered well."""
        self.fetch_deadline = now + fetch_timeout_ms
        self.has_fetched = True

    def is_led(self, now: int) -> bool:
        """True while the leader answers our fetches."""
        return self.has_fetched and now < self.fetch_deadline

    def doubt(self, deadline: int) -> None:
        """Note that the leader is gone, by its own word or because its connection is: others may try, and so may we.

        Only pre-votes follow from it, so nobody is disturbed whose leader is well.
        """
        self.has_fetched = False
        self.fetch_deadline = min(self.fetch_deadline, deadline)

    def grants(self, state: ElectionState, key: ReplicaKey, *, is_current: bool, is_pre_vote: bool) -> bool:
        """True when `key` may have the vote: only a pre-vote, and only while the leader has not proved itself."""
        return is_pre_vote and is_current and not self.has_fetched
