"""The offset index: where in the segment to begin looking for an offset.

An entry is the last offset of a batch, relative to the segment's base, and the position where that batch begins, four
bytes each. It is sparse: one entry each time more than `index.interval.bytes` have gone by.
"""

import struct
from bisect import bisect_left, bisect_right

from ottla.log.index_file import IndexFile


class OffsetIndex(IndexFile):
    """Last offsets of batches and their positions, both ascending."""

    __slots__ = ()

    entry = struct.Struct(">ii")

    def append(self, last_offset: int, position: int) -> None:
        """Add a batch, which lies behind all those known."""
        self._data += self.entry.pack(last_offset - self.base_offset, position)
        self.count += 1

    def newest(self) -> tuple[int, int]:
        """Return last offset and position of the newest entry; with none, the segment's beginning."""
        raw = self._newest()
        if raw is None:
            return self.base_offset, 0
        return self.base_offset + raw[0], raw[1]

    def position_at_or_before(self, offset: int) -> int:
        """Return where to begin so that the batch with `offset` lies at that position or behind it.

        Entries name the last offset of a batch, so the batch of the greatest entry not above `offset` is never behind
        the one looked for.
        """
        slot = self._slots_up_to(offset)
        return self._position(slot - 1) if slot else 0

    def position_from(self, position: int) -> int | None:
        """Return the greatest known batch position not above `position`, or None."""
        data, unpack, width = self._entry_bytes(), self.entry.unpack_from, self.entry.size
        slot = bisect_right(range(self.count), position, key=lambda n: unpack(data, n * width)[1])
        return self._position(slot - 1) if slot else None

    def truncate_to(self, offset: int) -> None:
        """Drop the entries of batches that reach `offset` or beyond."""
        data, unpack, width = self._entry_bytes(), self.entry.unpack_from, self.entry.size
        relative = offset - self.base_offset
        self.truncate_entries(
            bisect_left(range(self.count), relative, key=lambda n: unpack(data, n * width)[0])
        )

    def is_sane(self, size_bytes: int) -> bool:
        """Say whether the newest entry can be true of a segment of `size_bytes`.

        A crashed Kafka leaves its preallocated index padded with zeros; a first batch is never indexed, so a zero
        position cannot be a real entry.
        """
        return not self.count or self.could_be(*self.newest(), size_bytes)

    def could_be(self, last_offset: int, position: int, size_bytes: int) -> bool:
        """Say whether an entry can be true of a segment of `size_bytes`."""
        return last_offset >= self.base_offset and 0 < position < size_bytes

    def ascends(self) -> bool:
        """Say whether every entry lies behind the one before it, which a torn or padded file fails."""
        last_offset, last_position = -1, 0
        for offset, position in self.entry.iter_unpack(self._entry_bytes()):
            if offset <= last_offset or position <= last_position:
                return False
            last_offset, last_position = offset, position
        return True

    def _slots_up_to(self, offset: int) -> int:
        """Return how many entries are at or below `offset`, looking at the newest first."""
        relative = offset - self.base_offset
        unpack, width = self.entry.unpack_from, self.entry.size
        if self.count > self._first and unpack(self._data, 0)[0] <= relative:
            data, first = self._data, self._first
        else:
            data, first = self._entry_bytes(), 0
        loaded = range(self.count - first)
        return first + bisect_right(loaded, relative, key=lambda n: unpack(data, n * width)[0])

    def _position(self, slot: int) -> int:
        position: int = self.entry.unpack_from(self._data, (slot - self._first) * self.entry.size)[1]
        return position
