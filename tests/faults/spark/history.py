"""What a query wrote and what a reader saw of it, and whether both are exactly once.

A query's rows bear the number of their batch, a line in which order counts (a partition of the source, or a key), and
their place in that line. What a batch has to write is known from its offsets.

H1  Every row of every batch is there once, and nothing else is.
H2  In each partition batches follow in order, and within a line places rise. A line stays in its partition.
H3  A batch is one transaction, and a transaction is one batch.
H4  What a read-committed reader saw of a partition, at any time, is how the partition begins in the end.
H5  A batch of which anything was seen was seen whole soon after, whoever had died meanwhile.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

SETTLE_SECONDS_MAX = 3.0
SHOWN_MAX = 5

Place = tuple[str, int]  # line, place in it
Expected = Mapping[int, AbstractSet[Place]]  # by batch
Span = tuple[float, float]


class Row(NamedTuple):
    """A committed row as it lies in the target."""

    partition: int
    offset: int
    batch: int
    line: str
    number: int
    transaction: tuple[int, int]  # producer id, epoch

    @property
    def place(self) -> Place:
        return self.line, self.number


class Sight(NamedTuple):
    """A row as a read-committed reader got it."""

    at: float
    partition: int
    offset: int
    batch: int
    line: str
    number: int


def violations(
    expected: Expected, rows: Sequence[Row], sights: Sequence[Sight] = (), outages: Sequence[Span] = ()
) -> list[str]:
    """What is wrong with a history, in words; nothing when it is exactly once. `outages` excuse only slowness."""
    found = _content(expected, rows) + _order(rows) + _transactions(rows)
    return found + _seen(rows, sights) + _settling(expected, sights, outages)


def _content(expected: Expected, rows: Sequence[Row]) -> list[str]:
    """H1."""
    found = []
    written: dict[int, Counter[Place]] = defaultdict(Counter)
    for row in rows:
        written[row.batch][row.place] += 1
    for batch in sorted(written.keys() | expected.keys()):
        wanted, there = expected.get(batch, frozenset()), written[batch]
        lost = sorted(wanted - there.keys())
        strange = sorted(there.keys() - wanted)
        twice = sorted(place for place, count in there.items() if count > 1)
        for what, places in (
            ("lost", lost),
            ("not to be written", strange),
            ("written more than once", twice),
        ):
            if places:
                found.append(f"H1 batch {batch}: {len(places)} of {len(wanted)} {what}: {places[:SHOWN_MAX]}")
    everywhere = Counter(row.place for row in rows)
    again = sorted(place for place, count in everywhere.items() if count > 1)
    if again:
        found.append(f"H1 {len(again)} rows are there more than once: {again[:SHOWN_MAX]}")
    return found


def _order(rows: Sequence[Row]) -> list[str]:
    """H2."""
    found = []
    last_batch: dict[int, int] = {}
    last_number: dict[str, int] = {}
    homes: dict[str, int] = {}
    for row in sorted(rows, key=lambda row: (row.partition, row.offset)):
        before = last_batch.get(row.partition, -1)
        if row.batch < before:
            found.append(
                f"H2 partition {row.partition}: batch {row.batch} at {row.offset} comes after {before}"
            )
        last_batch[row.partition] = row.batch
        if row.number <= last_number.get(row.line, -1):
            found.append(
                f"H2 line {row.line}: {row.number} at {row.partition}/{row.offset} comes after {last_number[row.line]}"
            )
        last_number[row.line] = row.number
        if homes.setdefault(row.line, row.partition) != row.partition:
            found.append(f"H2 line {row.line} is in partitions {homes[row.line]} and {row.partition}")
    return found[:SHOWN_MAX]


def _transactions(rows: Sequence[Row]) -> list[str]:
    """H3."""
    of_batch: dict[int, set[tuple[int, int]]] = defaultdict(set)
    of_transaction: dict[tuple[int, int], set[int]] = defaultdict(set)
    for row in rows:
        of_batch[row.batch].add(row.transaction)
        of_transaction[row.transaction].add(row.batch)
    return [
        f"H3 batch {batch} was written by transactions {sorted(each)}"
        for batch, each in of_batch.items()
        if len(each) > 1
    ] + [
        f"H3 transaction {transaction} wrote batches {sorted(each)}"
        for transaction, each in of_transaction.items()
        if len(each) > 1
    ]


def _seen(rows: Sequence[Row], sights: Sequence[Sight]) -> list[str]:
    """H4."""
    lying: dict[int, list[tuple[int, int, str, int]]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row.partition, row.offset)):
        lying[row.partition].append((row.offset, row.batch, row.line, row.number))
    shown: dict[int, list[tuple[int, int, str, int]]] = defaultdict(list)
    for sight in sights:
        shown[sight.partition].append((sight.offset, sight.batch, sight.line, sight.number))
    found = []
    for partition, there in shown.items():
        begins = lying[partition][: len(there)]
        if there != begins:
            at = next((n for n, (a, b) in enumerate(zip(there, begins, strict=False)) if a != b), len(begins))
            instead = begins[at] if at < len(begins) else "nothing"
            found.append(f"H4 partition {partition}: {there[at]} was seen, {instead} is there")
    return found


def _settling(expected: Expected, sights: Sequence[Sight], outages: Sequence[Span]) -> list[str]:
    """H5."""
    if not sights:
        return []
    times: dict[int, list[float]] = defaultdict(list)
    for sight in sights:
        times[sight.batch].append(sight.at)
    found = []
    for batch, seen_at in sorted(times.items()):
        begin, end = min(seen_at), max(seen_at)
        excused = sum(max(0.0, min(end, until) - max(begin, since)) for since, until in outages)
        if end - begin - excused > SETTLE_SECONDS_MAX:
            found.append(f"H5 batch {batch} was seen in part for {end - begin - excused:.1f} s")
        missing = len(expected.get(batch, ())) - len(seen_at)
        if missing > 0:
            found.append(f"H5 batch {batch} was seen in part, {missing} rows never")
    return found
