"""What the groups whose assignment the broker decides have in common: members, and epochs that order what they hold."""

from typing import Any, Generic, TypeVar, cast

from ottla.groups.group import Group
from ottla.replicated.keyed import KeyedRecord
from ottla.wire.errors import BrokerError, ErrorCode

M = TypeVar("M")
G = TypeVar("G", bound="EpochGroup[Any]")

# The interval between assignments that nobody has chosen, and the group that waits the whole of it (ADR 0024).
INTERVAL_MS = 1_000
INTERVAL_MEMBERS = 1_000


class EpochGroup(Generic[M]):
    """A group of a protocol with epochs; what its members are like is the kind's own."""

    __slots__ = (
        "assignment_epoch",
        "assignment_timestamp",
        "epoch",
        "held_bytes",
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
        # What its members' names, and those of a topology, take in memory (`member_budget.py`).
        self.held_bytes = 0
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
        # An assignment that is yet to come was made before the clock was set back.
        return last == 0 or interval_ms == 0 or not last <= now < last + interval_ms

    def member(self, member_id: str) -> M:
        """Return a member; UNKNOWN_MEMBER_ID when it is none."""
        found = self.members.get(member_id)
        if found is None:
            message = f"Member {member_id} is not a member of group {self.id}."
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, message)
        return found

    def take_target_epoch(self, value: Any) -> bool:
        """Take in the record of the target's epoch; False for its tombstone, with which the targets go."""
        if value is not None:
            self.assignment_epoch = value.assignment_epoch
            self.assignment_timestamp = value.assignment_timestamp
            return True
        self.assignment_epoch = -1
        self.assignment_timestamp = 0
        return False


def group_of(groups: dict[str, Group], record: KeyedRecord, kind: type[G]) -> G | None:
    """Return the group that a record is of, which is made if need be; None for a tombstone of one that is not there.

    A group of another kind makes way, for the later record holds: a classic one that only holds offsets, or one whose
    tombstones are missing from the log. Apache Kafka would not load the latter; here the other groups matter more.
    """
    group_id: str = cast(Any, record.key).group_id
    group = groups.get(group_id)
    if isinstance(group, kind):
        return group
    if record.value is None:
        return None
    made = kind(group_id)
    groups[group_id] = cast(Group, made)
    return made
