"""What the groups whose assignment the broker decides have in common: members, and epochs that order what they hold."""

from typing import Generic, TypeVar

from ottla.wire.errors import BrokerError, ErrorCode

M = TypeVar("M")

# The interval between assignments that nobody has chosen, and the group that waits the whole of it (ADR 0024).
INTERVAL_MS = 1_000
INTERVAL_MEMBERS = 1_000


class EpochGroup(Generic[M]):
    """A group of a protocol with epochs; what its members are like is the kind's own."""

    __slots__ = (
        "assignment_epoch",
        "assignment_timestamp",
        "epoch",
        "id",
        "members",
        "metadata_hash",
        "refreshed",
    )

    def __init__(self, group_id: str) -> None:
        self.id = group_id
        self.epoch = 1
        self.metadata_hash = 0
        self.assignment_epoch = 1
        self.assignment_timestamp = 0
        self.members: dict[str, M] = {}
        # The version of the topics the hash was last computed for, and the epoch the group then had. An epoch above
        # ours means that its record was never written.
        self.refreshed = (-1, 0)

    def is_fresh(self, version: int) -> bool:
        """Whether the hash was computed for this version of the topics."""
        seen, epoch = self.refreshed
        return seen == version and epoch <= self.epoch

    def may_assign(self, interval_ms: int, now: int) -> bool:
        """Whether it is long enough since the last assignment; by default, a small group waits in proportion."""
        if interval_ms == INTERVAL_MS:
            interval_ms = interval_ms * min(len(self.members), INTERVAL_MEMBERS) // INTERVAL_MEMBERS
        last = self.assignment_timestamp
        # An interval of 0 helps when the clock was set back.
        return last == 0 or interval_ms == 0 or now >= last + interval_ms

    def member(self, member_id: str) -> M:
        """Return a member; UNKNOWN_MEMBER_ID when it is none."""
        found = self.members.get(member_id)
        if found is None:
            message = f"Member {member_id} is not a member of group {self.id}."
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, message)
        return found
