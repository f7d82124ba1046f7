"""In which order records of several topics are taken.

O1  Records of one topic keep their order, whatever their timestamps are.
O2  Between topics the earliest timestamp goes first; at equal times a table's change before the record of a stream that
    is joined with it, and otherwise the input that is said first.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from ottla.streams.plan.joins import StreamTableJoin
from ottla.streams.plan.node import Node
from ottla.streams.plan.sources import Source
from ottla.streams.plan.topology import Plan, upstream

T = TypeVar("T")


def taken(queues: Iterable[Iterable[T]], time: Callable[[T], int]) -> Iterator[T]:
    """Yield what is in queues: always the earliest of those that are first, and of equal ones that of the first
    queue.
    """
    waiting = [queue for each in queues if (queue := deque(each))]
    while waiting:
        yield min(waiting, key=lambda queue: time(queue[0])).popleft()
        waiting = [queue for queue in waiting if queue]


def ranked(plan: Plan) -> list[Source]:
    """Return the sources in the order in which their records are taken at equal times.

    What operators wish is done as far as they agree: joins with tables come first, then those that are said first.
    """
    later: dict[Source, set[Source]] = {each: set() for each in plan.sources}
    nodes = sorted(plan.nodes, key=lambda node: not isinstance(node, StreamTableJoin))
    for node in nodes:
        for earlier, after in _wishes(node):
            if earlier is not after and earlier not in _reached(later, after):
                later[earlier].add(after)
    found: list[Source] = []
    while len(found) < len(later):
        rest = [each for each in later if each not in found]
        found.append(next(each for each in rest if not any(each in later[other] for other in rest)))
    return found


def _wishes(node: Node) -> Iterator[tuple[Source, Source]]:
    inputs: Sequence[Node] = node.inputs[::-1] if isinstance(node, StreamTableJoin) else node.inputs
    for n, first in enumerate(inputs):
        for second in inputs[n + 1 :]:
            for earlier in _sources(first):
                for after in _sources(second):
                    yield earlier, after


def _sources(node: Node) -> list[Source]:
    return list(dict.fromkeys(each for each in upstream(node) if isinstance(each, Source)))


def _reached(later: dict[Source, set[Source]], start: Source) -> set[Source]:
    found, rest = {start}, [start]
    while rest:
        for each in later[rest.pop()] - found:
            found.add(each)
            rest.append(each)
    return found
