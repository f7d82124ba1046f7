"""The transaction index: the aborted transactions that end in a segment.

An entry is a version (two bytes, zero), the producer id, the transaction's first offset, the offset of its abort
marker, and the last stable offset after it, eight bytes each. The file appears with the first aborted transaction.
"""

import struct
from typing import NamedTuple

from ottla.log.index_file import IndexFile

_VERSION = 0


class AbortedTransaction(NamedTuple):
    """A transaction whose records a read-committed reader must not see."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex(IndexFile):
    """Aborted transactions in the order of their markers."""

    __slots__ = ()

    entry = struct.Struct(">hqqqq")

    def append(self, aborted: AbortedTransaction) -> None:
        """Add a transaction whose marker lies behind all those known."""
        self._data += self.entry.pack(_VERSION, *aborted)
        self.count += 1

    def entries(self) -> list[AbortedTransaction]:
        """Return all transactions of the segment."""
        return [AbortedTransaction(*fields[1:]) for fields in self.entry.iter_unpack(self._entry_bytes())]

    def collect(self, start_offset: int, end_offset: int, found: list[AbortedTransaction]) -> bool:
        """Add the transactions that touch `[start_offset, end_offset)` to `found`; say whether later ones cannot."""
        for aborted in self.entries():
            if aborted.last_offset >= start_offset and aborted.first_offset < end_offset:
                found.append(aborted)
            if aborted.last_stable_offset >= end_offset:
                return True
        return False

    def truncate_to(self, offset: int) -> None:
        """Drop the transactions whose marker lies at `offset` or beyond."""
        kept = sum(1 for aborted in self.entries() if aborted.last_offset < offset)
        self.truncate_entries(kept)

    def is_sane(self) -> bool:
        """Say whether the entries can belong to this segment."""
        return all(aborted.last_offset >= self.base_offset for aborted in self.entries())
