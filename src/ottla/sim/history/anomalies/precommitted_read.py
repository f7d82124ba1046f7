"""A transaction reads what it has written itself, before that is committed."""

from collections.abc import Iterator

from ottla.sim.history.anomaly import Anomaly
from ottla.sim.history.book import Book


def precommitted_read(book: Book) -> Iterator[Anomaly]:
    """Transactions that see their own values."""
    for episode in book.episodes:
        if episode.deed != "txn":
            continue
        own = {(send.key, send.value) for send in episode.sends}
        for key, offset, value in episode.seen:
            if (key, value) in own:
                yield Anomaly(
                    "precommitted-read", f"{episode} read its own {value} at offset {offset} of {key}"
                )
