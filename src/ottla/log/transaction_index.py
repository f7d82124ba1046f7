"""The transaction index: the aborted transactions that end in a segment.

An entry is a version (two bytes, zero), the producer id, the transaction's first offset, the offset of its abort
marker, and the last stable offset after it, eight bytes each. The file appears with the first aborted transaction.

X1  A question about some offsets looks at the entries that may answer it and at a few more: the markers are in order.
X2  What a file says is believed only once it has been looked through, which is when somebody first asks. A file that
    cannot be right is told again from the batches by `mend`, which the log provides.
"""

import struct
from bisect import bisect_left
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

from ottla.log.index_file import IndexFile
from ottla.world.disk import Disk

_VERSION = 0


class AbortedTransaction(NamedTuple):
    """A transaction whose records a read-committed reader must not see."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex(IndexFile):
    """Aborted transactions in the order of their markers."""

    __slots__ = ("_verified", "mend", "torn")

    entry = struct.Struct(">hqqqq")
    mend: Callable[[], list[AbortedTransaction]] | None

    def __init__(self, disk: Disk, path: str, base_offset: int, size: int) -> None:
        super().__init__(disk, path, base_offset, size)
        self.torn = size % self.entry.size != 0  # its size alone says that the file is not whole
        self._verified = size == 0
        self.mend = None

    def append(self, aborted: AbortedTransaction) -> None:
        """Add a transaction whose marker lies behind all those known."""
        self._data += self.entry.pack(_VERSION, *aborted)
        self.count += 1

    def entries(self) -> list[AbortedTransaction]:
        """Return all transactions of the segment."""
        if not self._verified:
            self._verify()
        return self._read()

    def _read(self) -> list[AbortedTransaction]:
        return [AbortedTransaction(*fields[1:]) for fields in self.entry.iter_unpack(self._entry_bytes())]

    def _verify(self) -> None:
        if self.mend is not None and not self.is_sane():
            self._replace(self.mend())
        self._verified = True

    def _replace(self, transactions: list[AbortedTransaction]) -> None:
        """Say something else from now on. A file that cannot be written stays as it is, to be mended another time."""
        self._data = bytearray().join(self.entry.pack(_VERSION, *aborted) for aborted in transactions)
        self.count = len(transactions)
        self._first = self.written = 0
        self.torn = False
        with suppress(OSError):
            self.disk.write_atomic(self.path, self._data)
            self.written = self.count

    def reset(self, size: int = 0) -> None:
        """Begin anew with an empty file, whatever `size` bytes it held."""
        super().reset(size)
        self.torn = False
        self._verified = True

    def collect(self, start_offset: int, end_offset: int, found: list[AbortedTransaction]) -> bool:
        """Add the transactions that touch `[start_offset, end_offset)` to `found`; say whether later ones cannot."""
        if not self._verified:
            self._verify()
        data, entry = self._entry_bytes(), self.entry
        first = bisect_left(
            range(self.count), start_offset, key=lambda number: entry.unpack_from(data, number * entry.size)[3]
        )
        for _, *fields in entry.iter_unpack(memoryview(data)[first * entry.size :]):
            if fields[1] < end_offset:
                found.append(AbortedTransaction(*fields))
            if fields[3] >= end_offset:
                return True
        return False

    def truncate_to(self, offset: int) -> None:
        """Drop the transactions whose marker lies at `offset` or beyond."""
        kept = sum(1 for aborted in self.entries() if aborted.last_offset < offset)
        self.truncate_entries(kept)

    def is_sane(self) -> bool:
        """Say whether the entries can belong to this segment: markers in order, each behind what it ends."""
        if self.torn or any(version for version, *_ in self.entry.iter_unpack(self._entry_bytes())):
            return False
        transactions = self._read()
        return all(
            aborted.producer_id >= 0
            and 0 <= aborted.first_offset < aborted.last_offset
            and aborted.last_offset >= self.base_offset
            for aborted in transactions
        ) and all(one.last_offset < next_one.last_offset for one, next_one in pairwise(transactions))
