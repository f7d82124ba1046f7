"""What is to happen when stream time gets there: names in the order of their times.

Windows that close, results that were held back, rows that nobody needs any more. A store has no order, so times are put
into slots of `grain_ms`, and a slot is a row or a few of the store: `number of the slot, number of the chunk` →
names with their times. Every micro-batch adds at most one chunk to a slot, and a slot is read once stream time has
come near.

T1  `pop` gives out each entry once, in the order of time and then of name, and none before its time.
T2  What a name means is the operator's: one whose time has changed meanwhile is popped at the old time too, and the
    operator sees from its row that nothing is due.
T3  Stream time never falls, and survives a restart.
"""

import heapq
import struct
from collections.abc import Iterator
from typing import Any

from ottla.streams.lowering.stateful.store import Store

_CHUNK = struct.Struct(">qi")
_HEAD = b""

NOT_YET = -(1 << 62)


class Timeline:
    """Names by time, and the stream time of an operator partition."""

    def __init__(self, store: Store, grain_ms: int = 1) -> None:
        self._store = store
        self._grain = max(grain_ms, 1)
        now, marks, slots = store.get(_HEAD) or (NOT_YET, {}, {})
        self.now: int = now
        # Whatever else an operator has to remember of a partition as a whole.
        self.marks: dict[str, Any] = marks
        self._slots: dict[int, int] = slots  # slot → chunks
        self._entries: set[tuple[int, bytes]] = set()
        self._heap: list[tuple[int, bytes]] = []

    def advance(self, timestamp: int) -> bool:
        """Move stream time on; return whether it moved."""
        if timestamp <= self.now:
            return False
        self.now = timestamp
        return True

    def add(self, time: int, name: bytes) -> None:
        """Let a name be popped once stream time, as the operator counts it, is at `time`."""
        entry = (time, name)
        if entry not in self._entries:
            self._entries.add(entry)
            heapq.heappush(self._heap, entry)

    def discard(self, time: int, name: bytes) -> None:
        """Take a name out, if it is in memory. If it is not, it will be popped, and mean nothing (T2)."""
        self._entries.discard((time, name))

    def load(self, until: int, *, whole: bool = False) -> list[bytes]:
        """Read what is due by `until` into memory and return all names there; only full slots if `whole`."""
        reached = until // self._grain
        due = sorted(slot for slot in self._slots if slot < reached or (slot == reached and not whole))
        chunks = [_CHUNK.pack(slot, n) for slot in due for n in range(self._slots[slot])]
        self._store.fetch(chunks)
        for chunk in chunks:
            for time, name in self._store.get(chunk):
                self.add(time, name)
            self._store.delete(chunk)
        for slot in due:
            del self._slots[slot]
        return [name for _, name in self._entries]

    def pop(self, until: int, *, whole: bool = False) -> Iterator[tuple[int, bytes]]:
        """Take out what is due by `until`. With `whole` some of it may stay for later, which is cheaper."""
        self.load(until, whole=whole)
        heap = self._heap
        while heap and heap[0][0] <= until:
            entry = heapq.heappop(heap)
            if entry in self._entries:
                self._entries.discard(entry)
                yield entry

    def first(self) -> tuple[int, bytes] | None:
        """Return the earliest entry of all, and leave it where it is."""
        while True:
            while self._heap and self._heap[0] not in self._entries:
                heapq.heappop(self._heap)
            slot = min(self._slots, default=None)
            if self._heap and (slot is None or self._heap[0][0] < slot * self._grain):
                return self._heap[0]
            if slot is None:
                return None
            self.load(slot * self._grain)

    def flush(self) -> None:
        """Put everything into the store."""
        slots: dict[int, list[tuple[int, bytes]]] = {}
        for entry in self._entries:
            slots.setdefault(entry[0] // self._grain, []).append(entry)
        for slot, entries in slots.items():
            chunk = self._slots.get(slot, 0)
            self._store.put(_CHUNK.pack(slot, chunk), sorted(entries))
            self._slots[slot] = chunk + 1
        self._store.put(_HEAD, (self.now, self.marks, self._slots))
        self._entries.clear()
        self._heap.clear()
