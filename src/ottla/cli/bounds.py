"""Where partitions begin and end, and what places in them mean, asked of the cluster."""

from collections.abc import Iterable, Sequence

from ottla.cli.error import MISUSED, CommandError
from ottla.cli.position import Anchor, Bounds, Position, parse_position
from ottla.client import Admin
from ottla.client.admin.offsets import Isolation, OffsetSpec
from ottla.client.record import TopicPartition
from ottla.world.clock import RealClock


def place(option: str, text: str) -> Position:
    """Read a place given on the command line."""
    try:
        return parse_position(text, RealClock().now_ms())
    except ValueError as error:
        raise CommandError(f"{option}: {error}", exit_code=MISUSED) from None


async def partitions_of(
    admin: Admin, topics: Sequence[str], numbers: Sequence[int] | None = None
) -> list[TopicPartition]:
    """Return all partitions of topics, or those of these numbers, which every topic must have."""
    described = await admin.topics.describe(topics)
    found = []
    for name in topics:
        there = [each.partition for each in described[name].partitions]
        missing = sorted(set(numbers or ()) - set(there))
        if missing:
            raise CommandError(
                f"topic {name} has no partition {missing[0]}", f"it has {len(there)}, counted from 0", exit_code=MISUSED
            )  # fmt: skip
        found += [TopicPartition(name, each) for each in there if numbers is None or each in numbers]
    return found


async def bounds_of(
    admin: Admin,
    partitions: Iterable[TopicPartition],
    time_ms: int | None = None,
    *,
    committed_only: bool = False,
) -> dict[TopicPartition, Bounds]:
    """Return where partitions begin and end, and where a time lies in them."""
    isolation = Isolation.READ_COMMITTED if committed_only else Isolation.READ_UNCOMMITTED
    keys = list(partitions)
    starts = await admin.offsets.list(dict.fromkeys(keys, OffsetSpec.EARLIEST))
    ends = await admin.offsets.list(dict.fromkeys(keys, OffsetSpec.LATEST), isolation=isolation)
    times = {}
    if time_ms is not None:
        listed = await admin.offsets.list(dict.fromkeys(keys, time_ms), isolation=isolation)
        times = {key: each.offset for key, each in listed.items() if each.offset >= 0}
    return {key: Bounds(starts[key].offset, ends[key].offset, at_time=times.get(key)) for key in keys}


def time_of(position: Position | None) -> int | None:
    """Return the time that a place names, if it names one."""
    return position.number if position is not None and position.anchor is Anchor.TIME else None
