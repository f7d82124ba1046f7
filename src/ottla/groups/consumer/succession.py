"""A static member's next incarnation, which takes its seat with all that it has."""

from dataclasses import replace

from ottla.groups.consumer import records
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import Member
from ottla.replicated.keyed import KeyedRecord


def take_over(group: ConsumerGroup, holder: Member, member_id: str, out: list[KeyedRecord]) -> Member:
    """Put a member in the place of the one that holds its instance id; it begins at epoch 0."""
    member = replace(holder, id=member_id, epoch=0, previous_epoch=0)
    out += records.member_gone(group.id, holder.id)
    out.append(records.subscription(group.id, member))
    out.append(records.target(group.id, member_id, group.targets.get(holder.id, {})))
    out.append(records.current(group.id, member))
    return member
