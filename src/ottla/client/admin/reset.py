"""Where a group's offset goes when it is reset.

R1  A target is between the start and the end offset of its partition, inclusive. Other offsets are moved to the
    nearer end.
R2  A time that lies after the last record is the end of the partition.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ottla.client.duration import Time, time_ms
from ottla.client.errors import NoOffset
from ottla.client.record import TopicPartition


class Ends(NamedTuple):
    """Where a partition begins and, behind its last record, ends."""

    start_offset: int
    end_offset: int


class Move(NamedTuple):
    """The committed offset of a group, or None, and the offset that a reset sets."""

    current: int | None
    target: int


class Reset(Protocol):
    """A target of a reset."""

    def time(self) -> int | None:
        """Return the time whose offset has to be looked up, in milliseconds since 1970, or None."""
        ...

    def aim(self, partition: TopicPartition, ends: Ends, current: int | None, found: int | None) -> int:
        """Return the target offset. `found` is the offset at the time, -1 if there is none."""
        ...


class _Timeless:
    def time(self) -> int | None:
        """Return nothing to look up."""
        return None


@dataclass(frozen=True, slots=True)
class ToEarliest(_Timeless):
    """Reset to the first record."""

    def aim(self, partition: TopicPartition, ends: Ends, current: int | None, found: int | None) -> int:
        """Return the start."""
        return ends.start_offset


@dataclass(frozen=True, slots=True)
class ToLatest(_Timeless):
    """Reset to the end."""

    def aim(self, partition: TopicPartition, ends: Ends, current: int | None, found: int | None) -> int:
        """Return the end."""
        return ends.end_offset


@dataclass(frozen=True, slots=True)
class ToCurrent(_Timeless):
    """Keep the committed offset. A partition without one is reset to the end."""

    def aim(self, partition: TopicPartition, ends: Ends, current: int | None, found: int | None) -> int:
        """Return the current offset."""
        return ends.end_offset if current is None else current


@dataclass(frozen=True, slots=True)
class ToOffset(_Timeless):
    """Reset to an offset: the same for all partitions, or one for each."""

    offset: int | Mapping[TopicPartition, int]

    def aim(self, partition: TopicPartition, ends: Ends, current: int | None, found: int | None) -> int:
        """Return that offset; NoOffset for a partition without one."""
        if isinstance(self.offset, int):
            return self.offset
        if partition not in self.offset:
            raise NoOffset(f"the plan has no offset for {partition}")
        return self.offset[partition]


@dataclass(frozen=True, slots=True)
class ShiftBy(_Timeless):
    """Move the offset by a number of records, backwards if it is negative."""

    records: int

    def aim(self, partition: TopicPartition, ends: Ends, current: int | None, found: int | None) -> int:
        """Return the shifted offset; NoOffset where there is none to begin at."""
        if current is None:
            hint = "reset to a place rather than by a distance"
            raise NoOffset(f"the group has no offset for {partition} to be shifted", hint=hint)
        return current + self.records


@dataclass(frozen=True, slots=True)
class ToTime:
    """Reset to the first record at or after a time: milliseconds since 1970, or a datetime."""

    moment: Time

    def time(self) -> int | None:
        """Return that time."""
        return time_ms(self.moment)

    def aim(self, partition: TopicPartition, ends: Ends, current: int | None, found: int | None) -> int:
        """Return the offset found."""
        return ends.end_offset if found is None or found < 0 else found


def plan(
    to: Reset, partition: TopicPartition, ends: Ends, current: int | None, found: int | None = None
) -> Move:
    """Return the move of one partition."""
    aimed = to.aim(partition, ends, current, found)
    return Move(current, min(max(aimed, ends.start_offset), ends.end_offset))
