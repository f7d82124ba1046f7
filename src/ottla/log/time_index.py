"""The time index: from which offset on a timestamp can be found.

An entry is the greatest timestamp so far, eight bytes, and the last offset, relative to the base, of the first batch
that reached it, four bytes. Both columns ascend, because an entry is added only when the greatest timestamp has
grown.
"""

import struct
from bisect import bisect_left, bisect_right

from ottla.log.index_file import IndexFile
from ottla.wire.batch import NO_TIMESTAMP
from ottla.world.disk import Disk


class TimeIndex(IndexFile):
    """Greatest timestamps and where they were reached."""

    __slots__ = ("_newest_timestamp",)

    entry = struct.Struct(">qi")

    def __init__(self, disk: Disk, path: str, base_offset: int, size: int) -> None:
        super().__init__(disk, path, base_offset, size)
        self._newest_timestamp: int | None = None

    def append(self, timestamp: int, last_offset: int) -> None:
        """Add a greatest timestamp, unless it is not greater than the newest entry."""
        known = self._newest_timestamp
        if known is None:
            known = self.newest()[0]
        if timestamp > known:
            self._data += self.entry.pack(timestamp, last_offset - self.base_offset)
            self.count += 1
            known = timestamp
        self._newest_timestamp = known

    def newest(self) -> tuple[int, int]:
        """Return timestamp and offset of the newest entry; with none, no timestamp at the segment's beginning."""
        raw = self._newest()
        if raw is None:
            return NO_TIMESTAMP, self.base_offset
        return raw[0], self.base_offset + raw[1]

    def offset_before(self, timestamp: int) -> int:
        """Return an offset such that all batches before it are older than `timestamp`."""
        data, unpack, width = self._entry_bytes(), self.entry.unpack_from, self.entry.size
        slot = bisect_right(range(self.count), timestamp, key=lambda n: unpack(data, n * width)[0])
        return self.base_offset + (unpack(data, (slot - 1) * width)[1] if slot else 0)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries that name `offset` or beyond."""
        data, unpack, width = self._entry_bytes(), self.entry.unpack_from, self.entry.size
        relative = offset - self.base_offset
        self.truncate_entries(
            bisect_left(range(self.count), relative, key=lambda n: unpack(data, n * width)[1])
        )

    def truncate_entries(self, count: int) -> None:
        """Drop the entries from `count` on, in memory and in the file."""
        super().truncate_entries(count)
        self._newest_timestamp = None

    def reset(self, size: int = 0) -> None:
        """Begin anew with an empty file, whatever `size` bytes it held."""
        super().reset(size)
        self._newest_timestamp = None

    def is_sane(self) -> bool:
        """Say whether the oldest entry can be true, and the newest one behind it."""
        if not self.count:
            return True
        timestamp, offset = self.newest()
        first_timestamp, first_offset = self._oldest()
        if first_timestamp < 0 or first_offset < 0:
            return False
        if self.count == 1:
            return True
        return timestamp > first_timestamp and offset > self.base_offset + first_offset

    def ascends(self) -> bool:
        """Say whether every entry lies behind the one before it, which a torn or padded file fails."""
        last_timestamp, last_offset = NO_TIMESTAMP, -1
        for timestamp, offset in self.entry.iter_unpack(self._entry_bytes()):
            if timestamp <= last_timestamp or offset <= last_offset:
                return False
            last_timestamp, last_offset = timestamp, offset
        return True
