"""A file of fixed-width entries, oldest first, whose newest entries may still be in memory alone.

I1  Entries are appended in order; `flush` brings to the file what it lacks, and nothing else writes there.
I2  Nothing is read before it is asked for: the count comes from the file's size, the newest entry from its last bytes,
    and the whole file only when a search needs older entries.

The log appends to the index of its active segment with every few thousand bytes, so an append touches memory only.
After an unclean stop the entries above the recovery point are rebuilt from the batches.
"""

import struct
from typing import ClassVar

from ottla.world.disk import Disk, File


class IndexFile:
    """Entries `[0, count)`; those from `_first` on are in `_data`, those below `written` are in the file."""

    __slots__ = ("_data", "_first", "base_offset", "count", "disk", "path", "written")

    entry: ClassVar[struct.Struct]

    def __init__(self, disk: Disk, path: str, base_offset: int, size: int) -> None:
        self.disk = disk
        self.path = path
        self.base_offset = base_offset
        self.count = self.written = self._first = size // self.entry.size
        self._data = bytearray()

    @property
    def size_bytes(self) -> int:
        """What the file will measure once all is written."""
        return self.count * self.entry.size

    def _entry_bytes(self) -> bytearray:
        """Return all entries, read from the file when they are not in memory yet."""
        if self._first:
            width = self.entry.size
            file = self._file()
            try:
                older = file.read(0, self._first * width)
            finally:
                file.rest()
            if len(older) != self._first * width:
                raise OSError(f"{self.path} is shorter than its {self.count} entries")
            self._data = bytearray(older) + self._data
            self._first = 0
        return self._data

    def _newest(self) -> tuple[int, ...] | None:
        """Return the last entry without reading the others."""
        if not self.count:
            return None
        width = self.entry.size
        if self.count > self._first:
            return self.entry.unpack_from(self._data, (self.count - 1 - self._first) * width)
        file = self._file()
        try:
            raw = file.read((self.count - 1) * width, width)
        finally:
            file.rest()
        if len(raw) != width:
            raise OSError(f"{self.path} is shorter than its {self.count} entries")
        return self.entry.unpack(raw)

    def _oldest(self) -> tuple[int, ...]:
        """Return the first entry of an index that has one."""
        if self._first == 0:
            return self.entry.unpack_from(self._data)
        file = self._file()
        try:
            return self.entry.unpack(file.read(0, self.entry.size))
        finally:
            file.rest()

    def _file(self) -> File:
        return self.disk.open(self.path, size=self.written * self.entry.size)

    def flush(self) -> bool:
        """Write the entries the file lacks; say whether there were any. An OSError leaves them in memory."""
        if self.written == self.count:
            return False
        width = self.entry.size
        file = self._file()
        try:
            file.append(bytes(self._data[(self.written - self._first) * width :]))
        finally:
            file.rest()
        self.written = self.count
        return True

    def truncate_entries(self, count: int) -> None:
        """Drop the entries from `count` on, in memory and in the file."""
        if count >= self.count:
            return
        width = self.entry.size
        if count < self._first:
            self._first = count
            self._data.clear()
        else:
            del self._data[(count - self._first) * width :]
        if self.written > count:
            file = self._file()
            try:
                file.truncate(count * width)
            finally:
                file.rest()
            self.written = count
        self.count = count

    def reset(self, size: int = 0) -> None:
        """Begin anew with an empty file, whatever `size` bytes it held."""
        file = self.disk.open(self.path, size=size)
        try:
            file.truncate(0)
        finally:
            file.rest()
        self.count = self.written = self._first = 0
        self._data.clear()

    def forget(self) -> None:
        """Drop the entries that can be read again."""
        if self.written == self.count and self.count > self._first:
            self._first = self.count
            self._data = bytearray()
