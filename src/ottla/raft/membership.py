"""Membership: the voters and the kraft.version that the log names, at each of its offsets.

B1  A VotersRecord counts from the moment it is appended, committed or not (Raft, §6). When it is cut off again, the
    one before it counts again.
B2  Where the log names no voters, those of the settings count; they are in no history.
"""

from bisect import bisect_right
from typing import Generic, TypeVar

from ottla.raft.voters import NO_VOTERS, RECONFIGURATION_SINCE, Voters
from ottla.wire.batch import Batch, read_records
from ottla.wire.control import read_control
from ottla.wire.messages.control import KRaftVersionRecord, VotersRecord

T = TypeVar("T")

BEFORE_THE_LOG = -1  # the offset of what formatting wrote


class History(Generic[T]):
    """Values by the offset from which they count."""

    __slots__ = ("offsets", "values")

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.values: list[T] = []

    def add(self, offset: int, value: T) -> None:
        """Let a value count from `offset` on."""
        if self.offsets and self.offsets[-1] >= offset:
            self.truncate(offset)
        self.offsets.append(offset)
        self.values.append(value)

    def at(self, offset: int) -> T | None:
        """What counted at `offset`."""
        found = bisect_right(self.offsets, offset)
        return self.values[found - 1] if found else None

    def truncate(self, end_offset: int) -> None:
        """Forget what counts from `end_offset` or later."""
        while self.offsets and self.offsets[-1] >= end_offset:
            self.offsets.pop()
            self.values.pop()

    def trim(self, start_offset: int) -> None:
        """Forget what no longer counted at `start_offset`."""
        passed = bisect_right(self.offsets, start_offset)
        if passed > 1:
            del self.offsets[: passed - 1], self.values[: passed - 1]

    def clear(self) -> None:
        """Forget all."""
        self.offsets.clear()
        self.values.clear()


class Membership:
    """Who votes, as far as the log has been read; it has always been read to its end."""

    __slots__ = ("_static", "_versions", "_voters", "kraft_version", "voters", "voters_offset")

    def __init__(self, static: Voters = NO_VOTERS) -> None:
        self._static = static
        self._voters: History[Voters] = History()
        self._versions: History[int] = History()
        self.voters = static
        self.voters_offset: int | None = None  # of the record that names them; None when the settings do
        self.kraft_version = 0

    @property
    def can_change(self) -> bool:
        """True when voters stand in the log, and so can be added and removed."""
        return self.kraft_version >= RECONFIGURATION_SINCE

    def load(self, last_offset: int, kraft_version: int, voters: Voters | None) -> None:
        """Begin with what a snapshot says that ends with `last_offset`."""
        self._voters.clear()
        self._versions.clear()
        if kraft_version:
            self._versions.add(last_offset, kraft_version)
        if voters is not None:
            self._voters.add(last_offset, voters)
        self._changed()

    def read(self, data: bytes | bytearray | memoryview, position: int, batch: Batch) -> None:
        """Take in a batch that was appended."""
        if not batch.is_control:
            return
        for record in read_records(data, position):
            control = read_control(record)
            if control is not None and isinstance(control.message, KRaftVersionRecord):
                self._versions.add(record.offset, control.message.kraft_version)
            elif control is not None and isinstance(control.message, VotersRecord):
                self._voters.add(record.offset, Voters.read(control.message))
        self._changed()

    def truncate(self, end_offset: int) -> None:
        """Forget what was cut off the log."""
        self._voters.truncate(end_offset)
        self._versions.truncate(end_offset)
        self._changed()

    def trim(self, start_offset: int) -> None:
        """Forget what nobody can go back to, since a snapshot ends at `start_offset`."""
        self._voters.trim(start_offset)
        self._versions.trim(start_offset)

    def at(self, offset: int) -> tuple[int, Voters | None]:
        """The kraft.version and the voters that a snapshot names whose last record is at `offset`."""
        return self._versions.at(offset) or 0, self._voters.at(offset)

    def _changed(self) -> None:
        named = self._voters
        self.voters = named.values[-1] if named.values else self._static
        self.voters_offset = named.offsets[-1] if named.offsets else None
        self.kraft_version = self._versions.values[-1] if self._versions.values else 0
