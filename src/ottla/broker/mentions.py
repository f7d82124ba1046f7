"""What a request names several times: it is described twice at most. Kafka describes it as often as it is named.

A few bytes name a group, a resource or a partition, and its description may be large: named a thousand times in one
request it would make an answer of a gigabyte.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

MENTIONS_MAX = 2


def mentions(named: Iterable[T], key: Callable[[T], Hashable]) -> Iterator[T]:
    """Go through what is named, in its order, each at most twice."""
    seen: Counter[Hashable] = Counter()
    for each in named:
        found = key(each)
        seen[found] += 1
        if seen[found] <= MENTIONS_MAX:
            yield each
