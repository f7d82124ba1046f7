"""Snapshots by their ids, and one that is being fetched.

A snapshot stands for the log up to an offset, so its name says all that Raft has to know of it: where that is, and in
which epoch. It holds committed records alone, which is why a replica may take another's at any time.
"""

from typing import NamedTuple


class SnapshotId(NamedTuple):
    """The end of the log that a snapshot stands for: the offset after its last record, and that record's epoch."""

    offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        """The name of the snapshot's file."""
        return f"{self.offset:020d}-{self.epoch:010d}.checkpoint"


# A snapshot of a million partitions takes about 100 MB. A larger one than this is no cluster's: whoever claims to have
# it is not believed.
SNAPSHOT_BYTES_MAX = 1 << 30

# What formatting leaves: the first voters of a dynamic quorum. It is never sent to anybody, since the first leader
# writes what it says into the log.
BOOTSTRAP_ID = SnapshotId(0, 0)


class Chunk(NamedTuple):
    """A piece of a snapshot that came from the leader; with the last one the file is whole."""

    id: SnapshotId
    position: int
    data: bytes
    is_last: bool


class Download:
    """A snapshot on its way here, of the size that its first piece tells."""

    __slots__ = ("id", "is_whole", "position", "size_bytes")

    def __init__(self, id: SnapshotId) -> None:
        self.id = id
        self.position = 0
        self.size_bytes: int | None = None
        self.is_whole = False

    def takes(self, size_bytes: int, piece_bytes: int) -> bool:
        """Say whether the next piece can be one of this snapshot: the size is sane and does not change, and it fits."""
        return (
            0 < piece_bytes <= size_bytes - self.position
            and size_bytes <= SNAPSHOT_BYTES_MAX
            and self.size_bytes in (None, size_bytes)
        )

    def took(self, size_bytes: int, piece_bytes: int) -> None:
        """Note that a piece has come."""
        self.size_bytes = size_bytes
        self.position += piece_bytes
        self.is_whole = self.position == size_bytes
