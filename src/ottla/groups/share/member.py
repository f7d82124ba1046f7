"""A member of a share group: who it is, what it wants, and what it reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ottla.replicated.keyed import Client
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from ottla.wire.records.share_group import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
)

JOINS = 0
LEAVES = -1
STABLE = 0  # The only state of a member: nobody waits for others to give up what they share.


@dataclass(frozen=True, slots=True)
class Member:
    """One member, as its records have it."""

    id: str
    epoch: int = 0
    previous_epoch: int = -1
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    assigned: Mapping[bytes, frozenset[int]] = field(default_factory=dict)

    @property
    def description_cost(self) -> int:
        """How much there is to say of it, in members of which there is little."""
        return 1 + (len(self.topics) + sum(map(len, self.assigned.values()))) // 20

    def reported(self, request: ShareGroupHeartbeatRequest, client: Client) -> "Member":
        """Return the member with what a heartbeat says of it; what that leaves out stays."""
        names = request.subscribed_topic_names
        return replace(
            self,
            rack_id=self.rack_id if request.rack_id is None else request.rack_id,
            topics=self.topics if names is None else frozenset(names),
            client_id=client.client_id,
            client_host=client.host,
        )

    def with_subscription(self, value: ShareGroupMemberMetadataValue) -> "Member":
        """Return the member with what its first record says."""
        return replace(
            self,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=frozenset(value.subscribed_topic_names),
        )

    def with_assignment(self, value: ShareGroupCurrentMemberAssignmentValue | None) -> "Member":
        """Return the member with what its second record says; without one it is on its way out."""
        if value is None:
            return replace(self, epoch=LEAVES, previous_epoch=LEAVES, assigned={})
        assigned = {each.topic_id: frozenset(each.partitions) for each in value.assigned_partitions}
        return replace(
            self, epoch=value.member_epoch, previous_epoch=value.previous_member_epoch, assigned=assigned
        )
