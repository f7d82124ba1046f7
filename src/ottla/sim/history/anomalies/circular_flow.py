"""G1c: each of some transactions has read what the next has written, round in a circle.

Only reads of writes count. That transactions write past each other in one partition is how Kafka is meant to be.
"""

from collections.abc import Iterator

from ottla.sim.history.anomaly import Anomaly
from ottla.sim.history.book import Book
from ottla.sim.history.episode import Episode

Edges = dict[Episode, list[Episode]]


def circular_flow(book: Book) -> Iterator[Anomaly]:
    """Circles of reads, the shortest of each knot."""
    edges: Edges = {}
    for value, readers in book.readers.items():
        found = book.writers.get(value)
        if found is not None and found[0].outcome != "fail":
            targets = [reader for reader in readers if reader is not found[0] and reader.outcome != "fail"]
            edges.setdefault(found[0], []).extend(targets)
    for knot in knots(edges):
        circle = shortest_circle(edges, knot)
        told = ", which was read by ".join(str(each) for each in [*circle, circle[0]])
        yield Anomaly("G1c", f"a value of {told}")


def knots(edges: Edges) -> Iterator[set[Episode]]:
    """The strongly connected parts of more than one, by Tarjan's algorithm, without recursion."""
    number: dict[Episode, int] = {}
    low: dict[Episode, int] = {}
    stack: list[Episode] = []
    on_stack: set[Episode] = set()
    for root in edges:
        if root in number:
            continue
        work = [(root, iter(edges.get(root, ())))]
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, following = work[-1]
            descended = False
            for next_one in following:
                if next_one not in number:
                    number[next_one] = low[next_one] = len(number)
                    stack.append(next_one)
                    on_stack.add(next_one)
                    work.append((next_one, iter(edges.get(next_one, ()))))
                    descended = True
                    break
                if next_one in on_stack:
                    low[node] = min(low[node], number[next_one])
            if descended:
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[node])
            if low[node] == number[node]:
                part: set[Episode] = set()
                while node not in part:
                    part.add(stack.pop())
                on_stack -= part
                if len(part) > 1:
                    yield part


def shortest_circle(edges: Edges, knot: set[Episode]) -> list[Episode]:
    """The shortest way from one member of a knot back to it; from the earliest, so that it is always the same."""
    start = min(knot, key=lambda episode: episode.index)
    came_from: dict[Episode, Episode] = {}
    frontier = [start]
    while frontier:
        following = []
        for node in frontier:
            for next_one in edges.get(node, ()):
                if next_one is start:
                    way = [node]
                    while way[-1] is not start:
                        way.append(came_from[way[-1]])
                    return way[::-1]
                if next_one in knot and next_one not in came_from:
                    came_from[next_one] = node
                    following.append(next_one)
        frontier = following
    raise AssertionError("a knot without a circle")
