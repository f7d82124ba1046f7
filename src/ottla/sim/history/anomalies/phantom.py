"""A value is read that nobody has written."""

from collections.abc import Iterator

from ottla.sim.history.anomaly import Anomaly
from ottla.sim.history.book import Book


def phantom(book: Book) -> Iterator[Anomaly]:
    """Values without a writer."""
    for (key, value), readers in book.readers.items():
        if (key, value) not in book.writers:
            yield Anomaly("phantom", f"{value} of {key} was written by nobody, and read by {readers[0]}")
