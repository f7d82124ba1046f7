"""A value stands at two offsets of its key: an idempotent producer's record was written twice."""

from collections import defaultdict
from collections.abc import Iterator

from ottla.sim.history.anomaly import Anomaly
from ottla.sim.history.book import Book


def duplicate(book: Book) -> Iterator[Anomaly]:
    """Values with several offsets."""
    for key, cells in book.cells.items():
        places: defaultdict[str, list[int]] = defaultdict(list)
        for offset, values in cells.items():
            for value in values:
                places[value].append(offset)
        for value, offsets in places.items():
            if len(offsets) > 1:
                told = ", ".join(map(str, sorted(offsets)))
                yield Anomaly("duplicate", f"{value} of {key} is at offsets {told}")
