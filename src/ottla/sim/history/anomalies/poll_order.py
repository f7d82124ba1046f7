"""A consumer is to see every value of a key in turn: none left out, none again.

Within one operation the findings have `int-` before their names. Between operations a consumer goes on where it was,
until it is assigned anew, or its process begins with a new client. What an operation saw that did not end well is not
known in full, so nothing is concluded from where it was.
"""

from collections.abc import Iterator

from ottla.sim.history.anomaly import Anomaly
from ottla.sim.history.book import Book


def poll_order(book: Book) -> Iterator[Anomaly]:
    """Jumps ahead, and steps back or on the spot."""
    places: dict[int, dict[str, int]] = {}  # process, key -> offset last seen
    for episode in book.episodes:
        if episode.deed in ("assign", "crash"):
            places.pop(episode.process, None)
            continue
        before = places.setdefault(episode.process, {})
        here: set[str] = set()
        for key, offset, value in episode.seen:
            prefix = "int-" if key in here else ""
            here.add(key)
            last = before.get(key)
            before[key] = offset
            if last is None:
                continue
            step = book.index(key, offset) - book.index(key, last)
            told = f"{episode} came from offset {last} of {key} to {offset}, {value}"
            if step <= 0:
                yield Anomaly(f"{prefix}nonmonotonic-poll", told)
            elif step > 1:
                yield Anomaly(f"{prefix}poll-skip", f"{told}, past {step - 1} that others saw")
        if episode.outcome == "info" and episode.deed != "send":
            places.pop(episode.process, None)
