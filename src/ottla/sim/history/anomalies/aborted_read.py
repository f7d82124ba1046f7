"""G1a: a value is read whose writer failed."""

from collections.abc import Iterator

from ottla.sim.history.anomaly import Anomaly
from ottla.sim.history.book import Book


def aborted_read(book: Book) -> Iterator[Anomaly]:
    """Values that were read though they were called off, or refused."""
    for (key, value), readers in book.readers.items():
        found = book.writers.get((key, value))
        if found is None:
            continue
        writer, send = found
        if writer.outcome == "fail" and not book.acknowledged(writer, send):
            yield Anomaly("G1a", f"{value} of {key} was read by {readers[0]}, though it is of {writer}")
