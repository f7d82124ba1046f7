"""A share group: its members, what they shall read and what they read, and the epochs that order the two.

G1  The epoch of the group rises with every change of what its members want or can have; the target assignment follows
    it, and the members follow the target.
G2  Everything here but `refreshed` is a fold of records.

    Empty --a member joins--> Stable --the last one leaves--> Empty
"""

from typing import TYPE_CHECKING

from ottla.groups.assignors.spec import Assignment
from ottla.groups.epochs import EpochGroup
from ottla.groups.group import Kind
from ottla.groups.member_limits import names_bytes
from ottla.groups.share import records
from ottla.groups.share.member import Member
from ottla.replicated.keyed import KeyedRecord
from ottla.wire.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from ottla.groups.share.progress import Progress

PROTOCOL_TYPE = "share"


class ShareGroup(EpochGroup[Member]):
    """One group."""

    __slots__ = (
        "_covered",
        "counts",
        "progress",
        "targets",
    )

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.targets: dict[str, Assignment] = {}
        # How many members want each topic.
        self.counts: dict[str, int] = {}
        self._covered: dict[bytes, set[int]] | None = None
        # None until a record says something of it.
        self.progress: Progress | None = None

    @property
    def kind(self) -> Kind:
        """Which protocol its members speak."""
        return Kind.SHARE

    @property
    def protocol_type(self) -> str:
        """What ListGroups shows."""
        return PROTOCOL_TYPE

    @property
    def state(self) -> str:
        """The state as Kafka names it."""
        return "Stable" if self.members else "Empty"

    def counts_with(self, before: Member, after: Member | None) -> dict[str, int]:
        """Return how many members want each topic once a member is replaced, or gone."""
        counts = dict(self.counts)
        if before.id in self.members:
            _count(counts, before, -1)
        if after is not None:
            _count(counts, after, 1)
        return counts

    def put(self, member: Member) -> None:
        """Take a member in, or in place of what it was."""
        before = self.members.get(member.id)
        if before is not None:
            self.held_bytes -= names_bytes(before.topics)
            _count(self.counts, before, -1)
        self.members[member.id] = member
        self.held_bytes += names_bytes(member.topics)
        _count(self.counts, member, 1)

    def remove(self, member_id: str) -> None:
        """Let a member go."""
        member = self.members.pop(member_id)
        self.held_bytes -= names_bytes(member.topics)
        _count(self.counts, member, -1)

    def set_target(self, member_id: str, assignment: Assignment | None) -> None:
        """Note what a member shall read; None when it is to go."""
        self._covered = None
        if assignment is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = assignment

    def lacks_assignment(self) -> bool:
        """Whether a share partition that is wanted and has state is not the one that members were assigned."""
        if not self.members or self.progress is None:
            return False
        if self._covered is None:
            self._covered = {}
            for assignment in self.targets.values():
                for topic_id, partitions in assignment.items():
                    self._covered.setdefault(topic_id, set()).update(partitions)
        return any(
            topic.name in self.counts and self._covered.get(topic_id, set()) ^ topic.partitions
            for topic_id, topic in self.progress.initialized.items()
        )

    def subscribes_to(self, topic: str) -> bool:
        """Whether a member reads the topic."""
        return any(topic in member.topics for member in self.members.values())

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, version: int, *, transactional: bool
    ) -> None:
        """Refuse: members of a share group commit no offsets."""
        raise self._no_offsets()

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Refuse: a share group has no committed offsets."""
        raise self._no_offsets()

    def check_delete(self) -> None:
        """Raise NON_EMPTY_GROUP while anybody is in it."""
        if self.members:
            raise BrokerError(ErrorCode.NON_EMPTY_GROUP, f"Group {self.id} is not empty.")

    def expires_at(self, now: int, commit_timestamp: int, retention_ms: int) -> int | None:
        """Never: there are no offsets to expire."""
        return None

    def tombstones(self) -> list[KeyedRecord]:
        """Return the records that remove the group; its share partitions' state is to be deleted before."""
        return records.group_gone(self.id, self.members)

    def _no_offsets(self) -> BrokerError:
        return BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.id} is not a consumer group.")


def _count(counts: dict[str, int], member: Member, by: int) -> None:
    for name in member.topics:
        count = counts.get(name, 0) + by
        if count:
            counts[name] = count
        else:
            del counts[name]
