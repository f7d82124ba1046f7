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
    """A snapshot on its way here."""

    __slots__ = ("id", "is_whole", "position")

    def __init__(self, id: SnapshotId) -> None:
        self.id = id
        self.position = 0
        self.is_whole = False
