"""One offset has two values: somebody was shown, or told, something that is not there any more."""

from collections.abc import Iterator

from ottla.sim.history.anomaly import Anomaly
from ottla.sim.history.book import Book


def inconsistent_offsets(book: Book) -> Iterator[Anomaly]:
    """Offsets with several values, over committed writes and all reads, even those of transactions that failed."""
    for key, cells in book.cells.items():
        for offset, values in cells.items():
            if len(values) > 1:
                told = ", ".join(sorted(values))
                yield Anomaly("inconsistent-offsets", f"offset {offset} of {key} is each of {told}")
