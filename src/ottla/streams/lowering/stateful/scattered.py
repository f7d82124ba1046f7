"""A dict under one key of a store that may grow large: its entries are scattered over chunks, so that a change
writes few.

The head says how many chunks there are and how many entries; a chunk is found by the hash of a name. When chunks grow
beyond a measure there are made twice as many.
"""

import struct
import zlib
from collections.abc import Iterable
from typing import Any

from ottla.streams.lowering.stateful.store import Store

_CHUNK = struct.Struct(">iI")
_FULL = 64


class Scattered:
    """The entries under one key: {name: value}."""

    def __init__(self, store: Store, at: bytes) -> None:
        self._store = store
        self._at = at
        self._chunks: int
        self._count: int
        self._chunks, self._count = store.get(self._head) or (1, 0)

    @property
    def _head(self) -> bytes:
        return _CHUNK.pack(-1, 0) + self._at

    def _chunk(self, number: int) -> bytes:
        return _CHUNK.pack(0, number) + self._at

    @staticmethod
    def heads(ats: Iterable[bytes]) -> list[bytes]:
        """Return what to read ahead before anything is asked of these keys."""
        return [_CHUNK.pack(-1, 0) + at for at in ats]

    def near(self, name: bytes) -> bytes:
        """Return what to read ahead to get at one entry."""
        return self._chunk(zlib.crc32(name) % self._chunks)

    def everything(self) -> list[bytes]:
        """Return what to read ahead to get at all entries."""
        return [self._chunk(n) for n in range(self._chunks)]

    def get(self, name: bytes) -> Any:
        """Return the value of a name, or None."""
        return (self._store.get(self.near(name)) or {}).get(name)

    def put(self, name: bytes, value: Any) -> None:
        """Give a name a value."""
        at = self.near(name)
        chunk = self._store.get(at) or {}
        if name not in chunk:
            self._count += 1
        chunk[name] = value
        self._store.put(at, chunk)
        if self._count > self._chunks * _FULL:
            self._divide()
        self._store.put(self._head, (self._chunks, self._count))

    def delete(self, name: bytes) -> None:
        """Forget a name."""
        at = self.near(name)
        chunk = self._store.get(at) or {}
        if chunk.pop(name, None) is None:
            return
        self._count -= 1
        if self._count == 0:
            for each in (*self.everything(), self._head):
                self._store.delete(each)
            self._chunks = 1
            return
        self._store.put(at, chunk)
        self._store.put(self._head, (self._chunks, self._count))

    def entries(self) -> list[tuple[bytes, Any]]:
        """Return all names and values, in the order of the names."""
        self._store.fetch(self.everything())
        chunks = (self._store.get(each) or {} for each in self.everything())
        return sorted(entry for chunk in chunks for entry in chunk.items())

    def _divide(self) -> None:
        entries = self.entries()
        self._chunks *= 2
        chunks: dict[bytes, dict[bytes, Any]] = {each: {} for each in self.everything()}
        for name, value in entries:
            chunks[self.near(name)][name] = value
        for at, chunk in chunks.items():
            self._store.put(at, chunk)
