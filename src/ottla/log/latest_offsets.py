"""The last offset of each key in the dirty part of a log: what the cleaner decides by, within bounded memory.

M1  Keys of 16 bytes and more are known by a 128-bit digest, shorter ones by themselves; no digest is as short as
    those, so the two never meet.
M2  The map covers offsets below `end_offset` and only those; it says nothing about records behind it.
M3  Its memory stays within what it was given, give or take one batch: `is_full` is asked between batches.
"""

from hashlib import blake2b

# A digest, an int and their part of the dict, measured on CPython 3.11 when they are most, while the dict grows.
ENTRY_BYTES = 192

_DIGEST_BYTES = 16
ABSENT = -1


class LatestOffsets:
    """Key → offset of its last record."""

    __slots__ = ("_offsets", "capacity", "end_offset")

    def __init__(self, size_bytes_max: int, start_offset: int) -> None:
        """Begin empty at `start_offset`, where the dirty part begins."""
        self._offsets: dict[bytes, int] = {}
        self.capacity = max(size_bytes_max // ENTRY_BYTES, 1)
        self.end_offset = start_offset

    @property
    def is_full(self) -> bool:
        """Whether the next batch must wait for another cleaning."""
        return len(self._offsets) >= self.capacity

    def put(self, key: bytes, offset: int) -> None:
        """Remember that `key` was written at `offset`, which lies behind all those known."""
        if len(key) >= _DIGEST_BYTES:
            key = blake2b(key, digest_size=_DIGEST_BYTES).digest()
        self._offsets[key] = offset

    def get(self, key: bytes) -> int:
        """Return where `key` was last written, or ABSENT, which is below every offset."""
        if len(key) >= _DIGEST_BYTES:
            key = blake2b(key, digest_size=_DIGEST_BYTES).digest()
        return self._offsets.get(key, ABSENT)

    def __len__(self) -> int:
        return len(self._offsets)
