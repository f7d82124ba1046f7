"""Where a group's offset goes when it is reset.

R1  A target lies between the two ends of its partition, both included: what was aimed beyond an end goes to that end.
R2  A time that lies after the last record is the end of the partition.
"""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ottla.client.errors import NoOffset
from ottla.client.record import TopicPartition


class Ends(NamedTuple):
    """Where a partition begins and, behind its last record, ends."""

    start_offset: int
    end_offset: int


class Move(NamedTuple):
    """What a group has committed, None for nothing, and where a reset takes it."""

    current: int | None
    target: int


class Reset(Protocol):
    """A way to reset."""

    def time(self) -> int | None:
        """Return the time whose offset must be looked up first, in milliseconds since 1970."""
        ...

    def aim(self, partition: TopicPartition, ends: Ends, current: int | None, found: int | None) -> int:
        """Return the offset wished for; `found` is that of the time, -1 for none."""
        ...


class _Timeless:
    def time(self) -> int | None:
        """Return nothing to look up."""
        return None


@dataclass(frozen=True, slots=True)
class ToEarliest(_Timeless):
    """To the first record there is."""

    def aim(self, partition: TopicPartition, ends: Ends, current: int | None, found: int | None) -> int:
        """Return the start."""
        return ends.start_offset


@dataclass(frozen=True, slots=True)
class ToLatest(_Timeless):
    """Behind the last record there is."""

    def aim(self, partition: TopicPartition, ends: Ends, current: int | None, found: int | None) -> int:
        """Return the end."""
        return ends.end_offset


@dataclass(frozen=True, slots=True)
class ToCurrent(_Timeless):
    """To where it is, which commits the end where there is no offset yet."""

    def aim(self, partition: TopicPartition, ends: Ends, current: int | None, found: int | None) -> int:
        """Return the current offset."""
        return ends.end_offset if current is None else current


@dataclass(frozen=True, slots=True)
class ToOffset(_Timeless):
    """To an offset, the same for every partition or one for each."""

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
    """By so many records, back when negative."""

    records: int

    def aim(self, partition: TopicPartition, ends: Ends, current: int | None, found: int | None) -> int:
        """Return the shifted offset; NoOffset where there is none to begin at."""
        if current is None:
            hint = "reset to a place rather than by a distance"
            raise NoOffset(f"the group has no offset for {partition} to be shifted", hint=hint)
        return current + self.records


@dataclass(frozen=True, slots=True)
class ToTime:
    """To the first record at or after a time: milliseconds since 1970, or a datetime."""

    moment: int | datetime.datetime

    def time(self) -> int | None:
        """Return that time."""
        return milliseconds(self.moment)

    def aim(self, partition: TopicPartition, ends: Ends, current: int | None, found: int | None) -> int:
        """Return the offset found."""
        return ends.end_offset if found is None or found < 0 else found


def milliseconds(moment: int | datetime.datetime) -> int:
    """Return a time in milliseconds since 1970; a datetime without a zone is local time."""
    if isinstance(moment, datetime.datetime):
        return round(moment.timestamp() * 1000)
    return int(moment)


def plan(
    to: Reset, partition: TopicPartition, ends: Ends, current: int | None, found: int | None = None
) -> Move:
    """Return the move of one partition."""
    aimed = to.aim(partition, ends, current, found)
    return Move(current, min(max(aimed, ends.start_offset), ends.end_offset))
