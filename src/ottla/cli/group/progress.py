"""How far groups have come, whatever their kind.

A share group has no position but a start: it is done with all that lies before it. It may be done with more behind it,
so that only the broker knows how much is left.
"""

from typing import NamedTuple

from ottla.client import Admin
from ottla.client.admin import GroupKind
from ottla.client.record import TopicPartition


async def kind_of(admin: Admin, group: str) -> GroupKind:
    """Return the kind of a group; one that does not exist would be made as a classic one."""
    listed = (await admin.groups.list()).get(group)
    return GroupKind.CLASSIC if listed is None else listed.kind


class Standing(NamedTuple):
    """How far a group has come in a partition; the lag where the broker tells it."""

    offset: int
    metadata: str = ""
    lag: int | None = None


async def standings_of(admin: Admin, group: str, kind: GroupKind) -> dict[TopicPartition, Standing]:
    """Return how far a group has come in each partition."""
    if kind is not GroupKind.SHARE:
        committed = await admin.offsets.committed(group)
        return {key: Standing(each.offset, each.metadata) for key, each in committed.items()}
    shared = (await admin.share_offsets.describe(group))[group]
    return {key: Standing(each.start_offset, lag=each.lag) for key, each in shared.items()}


async def move(admin: Admin, group: str, kind: GroupKind, offsets: dict[TopicPartition, int]) -> None:
    """Let a group go on from other offsets."""
    if kind is GroupKind.SHARE:
        await admin.share_offsets.alter(group, offsets)
    else:
        await admin.offsets.alter(group, offsets)


async def forget(admin: Admin, group: str, kind: GroupKind, topics: list[str]) -> None:
    """Forget how far a group has come in topics."""
    if kind is GroupKind.SHARE:
        await admin.share_offsets.delete(group, topics)
        return
    committed = await admin.offsets.committed(group)
    keys = [key for key in committed if key.topic in topics]
    if keys:
        await admin.offsets.delete(group, keys)
