"""A change of the voters that is under way: one at a time, from its request to the commit of its record.

C1  A change begins when no other is under way, the leader has committed a record of its own epoch, and the voters that
    stand in the log are committed. Without any of the three, two majorities could exist that share nobody (the flaw of
    single-server changes that was found after Raft's publication).
"""

from ottla.raft.voters import Address, ReplicaKey


class VoterChange:
    """One change: to add a voter, or to remove one."""

    __slots__ = ("addresses", "adds", "deadline", "is_acked_early", "key", "offset", "token")

    def __init__(
        self,
        token: object,
        key: ReplicaKey,
        deadline: int,
        *,
        adds: bool,
        addresses: tuple[Address, ...] = (),
        is_acked_early: bool = False,
        offset: int | None = None,
    ) -> None:
        self.token: object | None = token  # None once it was answered
        self.key = key
        self.deadline = deadline
        self.adds = adds
        self.addresses = addresses
        self.is_acked_early = is_acked_early
        self.offset = (
            offset  # of the record that makes the change; None while the new voter is asked what it speaks
        )
