"""A log in memory, in Kafka's batches, as a disk holds it."""

from bisect import bisect_left
from collections.abc import Callable
from typing import NamedTuple

from ottla.raft.log_view import Buffer
from ottla.raft.membership import Membership
from ottla.raft.outline import Outline
from ottla.raft.snapshot import SnapshotId
from ottla.sim.quorum.snapshot import read_snapshot
from ottla.wire.batch import crc_ok, scan
from ottla.wire.errors import BrokerError, ProtocolError


class Entry(NamedTuple):
    """One batch."""

    base_offset: int
    end_offset: int
    epoch: int
    data: bytes
    is_control: bool


def entries_in(data: bytes | bytearray) -> list[Entry]:
    """The batches in a run of bytes that are whole and sound: what a recovery finds."""
    found = []
    try:
        for position, batch in scan(data):
            if not crc_ok(data, position, batch.size):
                break
            found.append(
                Entry(
                    batch.base_offset,
                    batch.end_offset,
                    batch.partition_leader_epoch,
                    bytes(data[position : position + batch.size]),
                    batch.is_control,
                )
            )
    except (ProtocolError, BrokerError):
        pass
    return found


class SimLog:
    """The batches of a log, and its snapshots."""

    __slots__ = ("bases", "entries", "snapshots", "start_offset")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.bases: list[int] = []
        self.start_offset = 0
        self.snapshots: dict[SnapshotId, bytes] = {}

    @property
    def end_offset(self) -> int:
        """Where the log ends."""
        return self.entries[-1].end_offset if self.entries else self.start_offset

    @property
    def last(self) -> tuple[int, int]:
        """The epoch of the last batch, and where it ends."""
        if self.entries:
            return self.entries[-1].epoch, self.entries[-1].end_offset
        return next(
            (id.epoch for id in self.snapshots if id.offset == self.start_offset), 0
        ), self.start_offset

    def copy(self) -> "SimLog":
        """Another log of the same content."""
        other = SimLog()
        other.entries, other.bases = self.entries[:], self.bases[:]
        other.start_offset, other.snapshots = self.start_offset, dict(self.snapshots)
        return other

    def append(self, entries: list[Entry]) -> None:
        """Append batches."""
        for entry in entries:
            assert entry.base_offset == self.end_offset, "a log has no gaps"
            self.entries.append(entry)
            self.bases.append(entry.base_offset)

    def truncate(self, end_offset: int) -> list[Entry]:
        """Cut the log, and return what was cut off."""
        index = bisect_left(self.bases, end_offset)
        cut = self.entries[index:]
        del self.entries[index:], self.bases[index:]
        return cut

    def reset(self, id: SnapshotId) -> list[Entry]:
        """Begin anew behind a snapshot, and return what was there."""
        cut, self.entries, self.bases = self.entries, [], []
        self.start_offset = id.offset
        self._forget_before(id)
        return cut

    def trim(self, id: SnapshotId) -> None:
        """Remove what a snapshot stands for."""
        index = bisect_left(self.bases, id.offset)
        del self.entries[:index], self.bases[:index]
        self.start_offset = id.offset
        self._forget_before(id)

    def _forget_before(self, id: SnapshotId) -> None:
        self.snapshots = {each: data for each, data in self.snapshots.items() if each >= id}

    def between(self, start_offset: int, end_offset: int) -> list[Entry]:
        """The batches from one offset to another."""
        return self.entries[bisect_left(self.bases, start_offset) : bisect_left(self.bases, end_offset)]

    # What Raft reads.

    def read(self, offset: int, size_bytes_max: int) -> bytes:
        """Whole batches from `offset` on."""
        index = bisect_left(self.bases, offset)
        entries = self.entries
        if index >= len(entries):
            return b""
        data = entries[index].data
        if index + 1 == len(entries):
            return data
        parts, size = [data], len(data)
        for entry in entries[index + 1 :]:
            size += len(entry.data)
            if size > size_bytes_max:
                break
            parts.append(entry.data)
        return b"".join(parts)

    def check(self, data: Buffer, position: int) -> None:
        """Let every batch be: what the simulated state machine reads, it reads as it is."""

    def snapshot_size(self, id: SnapshotId) -> int | None:
        """The size of a snapshot."""
        data = self.snapshots.get(id)
        return None if data is None else len(data)

    def read_snapshot(self, id: SnapshotId, position: int, size_bytes_max: int) -> bytes:
        """A piece of a snapshot."""
        return self.snapshots[id][position : position + size_bytes_max]

    # What a start finds.

    def outline(self) -> Outline:
        """The outline of the log."""
        outline = Outline(self.start_offset, self.start_offset, (), self.snapshots)
        for entry in self.entries:
            outline.append(entry.end_offset, entry.epoch)
        return outline

    def recall(self, make: Callable[[], Membership]) -> Membership:
        """The voters that the newest snapshot and the log name."""
        membership = make()
        newest = max(self.snapshots, default=None)
        if newest is not None:
            content = read_snapshot(self.snapshots[newest])
            assert content is not None, "a snapshot with a name is whole"
            membership.load(newest.offset - 1, content.kraft_version, content.voters)
        for entry in self.entries:
            if entry.is_control and (newest is None or entry.base_offset >= newest.offset):
                for position, batch in scan(entry.data):
                    membership.read(entry.data, position, batch)
        return membership
