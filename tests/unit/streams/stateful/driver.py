"""Runs an operator without Spark, in micro-batches cut wherever a test likes."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

from ottla.streams.lowering.stateful.keycode import KeyCode, key_code
from ottla.streams.lowering.stateful.operator import Operator
from ottla.streams.lowering.stateful.record import Output, Record
from ottla.streams.lowering.stateful.store import MemoryBacking, Store
from ottla.streams.types.build import type_of
from ottla.streams.types.struct import WindowedKey

TEXT: KeyCode = key_code(type_of(str))
WINDOWED: KeyCode = key_code(WindowedKey(type_of(str)))


def record(key: Any, value: Any, timestamp: int, side: int = 0, old: Any = None) -> Record:
    return Record(side, key, None if key is None else key.encode(), value, timestamp, old=old)


def windowed(key: str, start: int, end: int, value: Any, timestamp: int, old: Any = None) -> Record:
    return Record(0, (key, start, end), WINDOWED.encode((key, start, end)), value, timestamp, old=old)


class Driver:
    """An operator partition: its stores outlive the operators that work on it."""

    def __init__(self, make: Callable[[], Operator]) -> None:
        self.make = make
        self.backings = {name: MemoryBacking() for name in make().stores}

    def batch(self, records: Sequence[Record]) -> list[Output]:
        operator = self.make()
        stores = {name: Store(backing) for name, backing in self.backings.items()}
        operator.open(stores)
        operator.prepare(records)
        for each in records:
            operator.step(each)
        operator.finish()
        for store in stores.values():
            store.flush()
        return operator.out

    def entries(self, store: str = "rows") -> int:
        return len(self.backings[store].entries)


def run(
    make: Callable[[], Operator], records: Sequence[Record], cuts: Iterable[int] = ()
) -> list[tuple[Any, Any, int]]:
    """Return (key, value, timestamp) of what flows out."""
    driver = Driver(make)
    return [
        (each.key, each.value, each.timestamp) for part in parts(records, cuts) for each in driver.batch(part)
    ]


def changes(
    make: Callable[[], Operator], records: Sequence[Record], cuts: Iterable[int] = ()
) -> list[tuple[Any, Any, Any, int]]:
    """Return (key, value, old, timestamp) of what flows out."""
    driver = Driver(make)
    return [
        (each.key, each.value, each.old, each.timestamp)
        for part in parts(records, cuts)
        for each in driver.batch(part)
    ]


def parts(records: Sequence[Record], cuts: Iterable[int]) -> list[Sequence[Record]]:
    edges = [0, *sorted({cut for cut in cuts if 0 < cut < len(records)}), len(records)]
    return [records[start:end] for start, end in pairwise(edges)]


def table_of(made: Sequence[tuple[Any, Any, Any, int]]) -> dict[Any, Any]:
    """Return the table that changes leave behind, and check that each says truly what was there before."""
    table: dict[Any, Any] = {}
    for key, value, old, _ in made:
        assert table.get(key) == old, f"{key}: {old!r} is said to have been there, not {table.get(key)!r}"
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value
    return table
