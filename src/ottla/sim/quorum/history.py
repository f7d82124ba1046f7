"""The history: what is committed, as whoever learns it first reports it. Checkers hold everything else against it."""

from hashlib import blake2b

from ottla.sim.quorum.log import Entry


class History:
    """The committed log."""

    __slots__ = ("by_base", "digests", "end_offset", "entries", "epochs")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.by_base: dict[int, Entry] = {}
        self.epochs: list[int] = []  # in which each entry was committed
        self.digests: dict[int, bytes] = {0: b""}  # over all before an offset
        self.end_offset = 0

    def add(self, entry: Entry, epoch: int) -> None:
        """Note what was committed in an epoch."""
        self.entries.append(entry)
        self.by_base[entry.base_offset] = entry
        self.epochs.append(epoch)
        digest = blake2b(entry.data, digest_size=8, key=self.digests[self.end_offset]).digest()
        self.end_offset = entry.end_offset
        self.digests[self.end_offset] = digest

    def last_before(self, epoch: int) -> Entry | None:
        """The last entry that was committed in a lower epoch."""
        for entry, committed_in in zip(reversed(self.entries), reversed(self.epochs), strict=True):
            if committed_in < epoch:
                return entry
        return None
