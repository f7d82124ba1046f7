"""Members that go, by their own will or because they were not heard from.

Who goes takes nothing along: what it ran is free in the same step, and the group enters a new epoch.
"""

from ottla.groups.streams import records
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.member import Member
from ottla.replicated.keyed import KeyedRecord


def fence(group: StreamsGroup, member: Member) -> list[KeyedRecord]:
    """Return the records that let a member go."""
    return [
        *records.member_gone(group.id, member.id),
        records.epoch(group.id, group.epoch + 1, group.metadata_hash, group.validated_epoch, group.configs),
    ]
