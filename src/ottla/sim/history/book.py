"""The book: who wrote each value, who read it, where, and in which order a key's values stand.

B1  A write has been committed when its episode is ok, when it was acknowledged by itself (O3), or when some value of
    its episode was read: a transaction is whole.
B2  The order of a key is that of the offsets at which committed writes and all reads place values. What lies between,
    the markers of transactions and what was called off, leaves no hole: `index` counts only offsets that somebody has
    read, so what nobody ever read is lost, and not skipped by everyone.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping

from ottla.sim.history.episode import Episode
from ottla.sim.history.op import Send


class Book:
    """All that the rules look up."""

    def __init__(self, episodes: Iterable[Episode]) -> None:
        self.episodes = list(episodes)
        self.writers: dict[tuple[str, str], tuple[Episode, Send]] = {}
        self.readers: defaultdict[tuple[str, str], list[Episode]] = defaultdict(list)
        cells: defaultdict[str, defaultdict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        read: defaultdict[str, set[int]] = defaultdict(set)
        for episode in self.episodes:
            for send in episode.sends:
                self.writers[send.key, send.value] = (episode, send)
            for key, offset, value in episode.seen:
                readers = self.readers[key, value]
                if not readers or readers[-1] is not episode:
                    readers.append(episode)
                cells[key][offset].add(value)
                read[key].add(offset)
        self._was_read = {writer for value in self.readers if (writer := self._writer(value)) is not None}
        for (key, value), (episode, send) in self.writers.items():
            if send.offset is not None and self.committed(episode, send):
                cells[key][send.offset].add(value)
        self.cells: Mapping[str, Mapping[int, set[str]]] = cells  # key, offset -> values
        self._read = {key: sorted(offsets) for key, offsets in read.items()}

    def _writer(self, value: tuple[str, str]) -> Episode | None:
        found = self.writers.get(value)
        return None if found is None else found[0]

    def acknowledged(self, episode: Episode, send: Send) -> bool:
        """Whether the writer was told that it is there (O3)."""
        return episode.outcome == "ok" or (episode.deed == "send" and send.offset is not None)

    def committed(self, episode: Episode, send: Send) -> bool:
        """Whether a write must be there (B1)."""
        if self.acknowledged(episode, send):
            return True
        if episode.deed == "send":
            return (send.key, send.value) in self.readers
        return episode.outcome == "info" and episode in self._was_read

    def index(self, key: str, offset: int) -> int:
        """The place of an offset among those of its key that were read."""
        return bisect_left(self._read.get(key, ()), offset)

    def last_read(self, key: str) -> int:
        """The highest offset of a key that was read; -1 when none was."""
        found = self._read.get(key)
        return found[-1] if found else -1
