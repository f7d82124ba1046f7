"""A committed value is passed over by all readers, though they read on behind it."""

from collections.abc import Iterator

from ottla.sim.history.anomaly import Anomaly
from ottla.sim.history.book import Book


def lost_write(book: Book) -> Iterator[Anomaly]:
    """Committed values below what was read of their key that nobody ever read."""
    for (key, value), (writer, send) in book.writers.items():
        if send.offset is None or (key, value) in book.readers or not book.committed(writer, send):
            continue
        if send.offset <= book.last_read(key):
            yield Anomaly(
                "lost-write",
                f"{value} of {key}, by {writer} at offset {send.offset}, was never read; "
                f"offset {book.last_read(key)} was",
            )
