"""What the members of a group want, counted: by name, and through regular expressions.

C1  A topic is counted once for each member that names it, and once for each resolved regular expression that
    matches it; a topic nobody wants is not in the table.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

# How many members name a topic, and how many regular expressions stand for it.
Counts = dict[str, tuple[int, int]]


class Resolved(NamedTuple):
    """The topics a regular expression stood for, in which version of the metadata, and when that was found."""

    topics: frozenset[str] = frozenset()
    version: int = 0
    timestamp: int = 0


def add(counts: Counts, topics: Iterable[str], *, names: int = 0, regexes: int = 0) -> None:
    """Count topics more often, or less."""
    for topic in topics:
        found = counts.get(topic)
        if found is None:
            if names + regexes > 0:
                counts[topic] = names, regexes
            continue
        after = found[0] + names, found[1] + regexes
        if any(after):
            counts[topic] = after
        else:
            del counts[topic]


def tally(table: dict[str, int], name: str | None, by: int) -> None:
    """Count a name more often, or less; no name, or an empty one, counts for nothing."""
    if name:
        after = table.get(name, 0) + by
        if after > 0:
            table[name] = after
        else:
            table.pop(name, None)


def is_homogeneous(regexes: Mapping[str, int], counts: Mapping[str, tuple[int, int]], members: int) -> bool:
    """Whether all members want the same: the same names, or the one regular expression and no names."""
    if not regexes:
        return all(by_name == members for by_name, _ in counts.values())
    if next(iter(regexes.values())) != members:
        return False
    return all(count == (0, 1) for count in counts.values())
