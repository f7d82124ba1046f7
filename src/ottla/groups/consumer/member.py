"""A member of a consumer group: what it wants, what it holds, and how far it has come.

    STABLE --must give up partitions--> UNREVOKED --gave them up--> STABLE, or
    STABLE --waits for others--> UNRELEASED --they gave them up--> STABLE

Members are values: a change makes a new one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from ottla.groups.member_limits import names_bytes
from ottla.wire.records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
)

# Partitions by the id of their topic, each with the epoch in which the member got it.
Holding = Mapping[bytes, Mapping[int, int]]
ClassicTraits = ConsumerGroupMemberMetadataValue.ClassicMemberMetadata

# Epochs by which a member says that it goes, and a static one that it may be back.
LEAVES = -1
LEAVES_FOR_NOW = -2


class MemberState(IntEnum):
    """How a member stands to its assignment; the number is the one kept in records."""

    STABLE = 0
    UNREVOKED = 1
    UNRELEASED = 2
    UNKNOWN = 127

    @classmethod
    def of(cls, value: int) -> "MemberState":
        """Return the state a record names, which may be one of a newer release."""
        return cls(value) if value in (0, 1, 2) else cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class Member:
    """One member; `assigned` is what it may read, `revoking` what it has been told to give up."""

    id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str | None = ""
    assignor: str | None = None
    assigned: Holding = field(default_factory=dict)
    revoking: Holding = field(default_factory=dict)
    classic: ClassicTraits | None = None

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Whether the member has all of the target assignment of an epoch, and nothing else."""
        return self.state is MemberState.STABLE and self.epoch == assignment_epoch

    def epoch_of(self, topic_id: bytes, partition: int) -> int | None:
        """Return the epoch in which the member got a partition that it holds or gives up; None for neither."""
        found = self.assigned.get(topic_id, {}).get(partition)
        return found if found is not None else self.revoking.get(topic_id, {}).get(partition)

    @property
    def size_bytes(self) -> int:
        """How many bytes it holds: of what it wants, and of what it said as a classic member."""
        said = () if self.classic is None else self.classic.supported_protocols
        return names_bytes(self.topics) + sum([len(each.metadata) for each in said])

    @property
    def description_cost(self) -> int:
        """How much there is to say of it, in members of which there is little."""
        held = sum(map(len, self.assigned.values())) + sum(map(len, self.revoking.values()))
        return 1 + (len(self.topics) + 2 * held) // 20

    def with_subscription(self, value: ConsumerGroupMemberMetadataValue) -> "Member":
        """Return the member as a record describes it."""
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=frozenset(value.subscribed_topic_names),
            regex=value.subscribed_topic_regex,
            assignor=value.server_assignor,
            classic=value.classic_member_metadata,
        )

    def with_assignment(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> "Member":
        """Return the member with what a record says that it holds."""
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState.of(value.state),
            assigned=_holding(value.assigned_partitions, value.member_epoch),
            revoking=_holding(value.partitions_pending_revocation, value.member_epoch),
        )


def _holding(
    topics: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions], member_epoch: int
) -> Holding:
    # Releases before 4.3 kept no epochs with the partitions; a static member that left has -2 as its own.
    fallback = max(member_epoch, 0)
    found: dict[bytes, Mapping[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is not None and len(epochs) == len(topic.partitions):
            found[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
        else:
            found[topic.topic_id] = dict.fromkeys(topic.partitions, fallback)
    return found
