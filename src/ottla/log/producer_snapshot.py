"""Producer snapshot files: what a log knew of its producers at one offset, in Kafka's binary form.

The file is a version (int16, one), a CRC-32C of all that follows it, a count, and the entries. Only the last batch of
each producer is kept, so after a restart only that one's offsets are known when a producer sends it again.
"""

import struct
from collections.abc import Iterable
from typing import NamedTuple

from crc32c import crc32c

_HEAD = struct.Struct(">hIi")
_ENTRY = struct.Struct(">qhiqiqiq")
_VERSION = 1
_CRC_FROM = 6


class SnapshotError(Exception):
    """A snapshot that cannot be trusted."""


class SnapshotEntry(NamedTuple):
    """One producer; -1 stands for what there is none of."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    transaction_first_offset: int


def encode_snapshot(entries: Iterable[SnapshotEntry]) -> bytes:
    """Return the content of a snapshot file."""
    body = b"".join(_ENTRY.pack(*entry) for entry in entries)
    count = struct.pack(">i", len(body) // _ENTRY.size)
    return struct.pack(">hI", _VERSION, crc32c(count + body)) + count + body


def decode_snapshot(data: bytes) -> list[SnapshotEntry]:
    """Return the entries of a snapshot file, or raise SnapshotError."""
    if len(data) < _HEAD.size:
        raise SnapshotError(f"{len(data)} bytes are too few")
    version, crc, count = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise SnapshotError(f"version {version} is not known")
    if crc32c(memoryview(data)[_CRC_FROM:]) != crc:
        raise SnapshotError("the CRC does not match")
    if count * _ENTRY.size != len(data) - _HEAD.size:
        raise SnapshotError(f"{count} entries do not fill {len(data)} bytes")
    return [SnapshotEntry(*fields) for fields in _ENTRY.iter_unpack(memoryview(data)[_HEAD.size :])]
