"""Who may speak for a member: by its epoch, and by its instance id.

K1  A member that is behind by one epoch is let in when all it owns is assigned to it: the answer that told it of the
    new epoch was lost.
K2  An instance id belongs to one member at a time; another gets it once that one has left for now (epoch -2), or when
    one of the two speaks the classic protocol.
"""

from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import LEAVES_FOR_NOW, Member
from ottla.groups.consumer.reconciliation import Owned
from ottla.wire.errors import BrokerError, ErrorCode


def check_epoch(member: Member, epoch: int, owned: Owned) -> None:
    """Raise FENCED_MEMBER_EPOCH unless the member is where the coordinator takes it to be, or joins anew."""
    if epoch in (0, member.epoch):
        return
    if epoch < member.epoch and epoch == member.previous_epoch and _is_assigned(owned, member):
        return
    word = "greater" if epoch > member.epoch else "smaller"
    message = (
        f"The consumer group member has a {word} member epoch ({epoch}) than the one known by the group coordinator "
        f"({member.epoch}). The member must abandon all its partitions and rejoin."
    )
    raise BrokerError(ErrorCode.FENCED_MEMBER_EPOCH, message)


def check_released(holder: Member, member_id: str) -> None:
    """Raise UNRELEASED_INSTANCE_ID unless the holder of an instance id has left it to whoever comes."""
    if holder.epoch != LEAVES_FOR_NOW:
        message = (
            f"Static member {member_id} with instance id {holder.instance_id} cannot join the group because the "
            f"instance id is owned by {holder.id} member."
        )
        raise BrokerError(ErrorCode.UNRELEASED_INSTANCE_ID, message)


def static_holder(group: ConsumerGroup, instance_id: str, member_id: str | None) -> Member:
    """Return the member of an instance id, which must be this one; with None, whichever it is."""
    holder = group.static_member(instance_id)
    if holder is None:
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member_id is not None and holder.id != member_id:
        message = (
            f"Static member {member_id} with instance id {instance_id} was fenced by member {holder.id}."
        )
        raise BrokerError(ErrorCode.FENCED_INSTANCE_ID, message)
    return holder


def check_room(group: ConsumerGroup, member_id: str, size_max: int) -> None:
    """Raise GROUP_MAX_SIZE_REACHED when a newcomer would be one too many."""
    if len(group.members) >= size_max and member_id not in group.members:
        message = f"The consumer group has reached its maximum capacity of {size_max} members."
        raise BrokerError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)


def _is_assigned(owned: Owned, member: Member) -> bool:
    if owned is None:
        return False
    assigned = member.assigned
    return all(
        topic_id in assigned and assigned[topic_id].keys() >= set(partitions)
        for topic_id, partitions in owned.items()
    )
