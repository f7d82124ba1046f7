"""A producer's later value stands behind its earlier one; within one operation the finding begins with `int-`."""

from collections.abc import Iterator

from ottla.sim.history.anomaly import Anomaly
from ottla.sim.history.book import Book


def send_order(book: Book) -> Iterator[Anomaly]:
    """Writes that overtook earlier ones of their producer."""
    places: dict[int, dict[str, int]] = {}  # process, key -> highest offset
    for episode in book.episodes:
        if episode.deed == "crash":
            places.pop(episode.process, None)
            continue
        before = places.setdefault(episode.process, {})
        here: dict[str, int] = {}
        for send in episode.sends:
            if send.offset is None or not book.committed(episode, send):
                continue
            key, offset = send.key, send.offset
            told = f"{episode} sent {send.value} to offset {offset} of {key}, after one to offset"
            if offset < here.get(key, -1):
                yield Anomaly("int-nonmonotonic-send", f"{told} {here[key]}")
            elif offset < before.get(key, -1):
                yield Anomaly("nonmonotonic-send", f"{told} {before[key]}")
            here[key] = max(offset, here.get(key, -1))
        before |= {key: max(offset, before.get(key, -1)) for key, offset in here.items()}
