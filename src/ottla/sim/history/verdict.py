"""What is to be said of a history: how much of it there is, and which anomalies were found."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ottla.sim.history.anomalies import RULES
from ottla.sim.history.anomaly import Anomaly
from ottla.sim.history.book import Book
from ottla.sim.history.episode import episodes
from ottla.sim.history.op import Op

SHOWN_MAX = 8  # of each anomaly


@dataclass(frozen=True, slots=True)
class Verdict:
    """Counts of what was done, and what is wrong."""

    counts: dict[str, int]
    anomalies: tuple[Anomaly, ...]

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.anomalies

    @property
    def names(self) -> frozenset[str]:
        """Which anomalies there are."""
        return frozenset(anomaly.name for anomaly in self.anomalies)

    def __str__(self) -> str:
        lines = [f"{name:<24} {count:>10,}" for name, count in self.counts.items()]
        if self.is_sound:
            return "\n".join([*lines, "", "no anomaly", ""])
        by_name = Counter(anomaly.name for anomaly in self.anomalies)
        for name, count in by_name.most_common():
            lines += ["", f"{name}: {count}"]
            lines += [f"  {each.text}" for each in self.anomalies if each.name == name][:SHOWN_MAX]
            lines += [f"  … and {count - SHOWN_MAX} more"] if count > SHOWN_MAX else []
        return "\n".join([*lines, ""])


def judge(ops: Iterable[Op]) -> Verdict:
    """Hold a history against every rule."""
    book = Book(episodes(ops))
    anomalies = tuple(anomaly for rule in RULES for anomaly in rule(book))
    return Verdict(_count(book), anomalies)


def _count(book: Book) -> dict[str, int]:
    ended = Counter((episode.deed, episode.outcome) for episode in book.episodes)
    written = book.writers.values()
    by_deed = {
        f"{deed} {outcome}": count
        for (deed, outcome), count in sorted(ended.items())
        if deed in ("send", "txn", "poll")
    }
    return by_deed | {
        "crashes": sum(count for (deed, _), count in ended.items() if deed == "crash"),
        "values sent": len(written),
        "values acknowledged": sum(book.acknowledged(episode, send) for episode, send in written),
        "values read": len(book.readers),
        "reads of values": sum(len(readers) for readers in book.readers.values()),
    }
