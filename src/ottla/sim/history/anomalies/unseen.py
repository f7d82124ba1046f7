"""A committed value that nobody has read by the end, behind all that was read, or of unknown place."""

from collections.abc import Iterator

from ottla.sim.history.anomaly import Anomaly
from ottla.sim.history.book import Book


def unseen(book: Book) -> Iterator[Anomaly]:
    """Committed values that the final read should have come to. Values of one transaction are all there or none is."""
    for (key, value), (writer, send) in book.writers.items():
        if (key, value) in book.readers or not book.committed(writer, send):
            continue
        if send.offset is None or send.offset > book.last_read(key):
            place = "an unknown offset" if send.offset is None else f"offset {send.offset}"
            yield Anomaly("unseen", f"{value} of {key}, by {writer} at {place}, was not read by the end")
