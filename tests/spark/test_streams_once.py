"""On Spark an operator with state runs once a micro-batch, however many read it: a function is called once a record.

What is called notes so in a file, since it is called in processes of Spark's. That each kind of operator does so is
shown without Spark (tests/unit/streams/stateful/test_chain.py).
"""

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.streams import App, Processor, Store, TumblingWindow, within
from ottla.streams.processor import Incoming, ProcessorContext

pytestmark = pytest.mark.timeout(600)


def noting(place: Path, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """A function of two arguments that notes each of its calls."""
    path = str(place)

    def noted(one: Any, other: Any) -> Any:
        with open(path, "ab", 0) as file:
            file.write(f"{name}\n".encode())
        return call(one, other)

    return noted


def processor(place: Path) -> type[Processor]:
    count = noting(place, "process", lambda one, other: one + other)

    class Counting(Processor):
        def init(self, context: ProcessorContext) -> None:
            self.context = context
            self.seen = context.store("seen")

        def process(self, record: Incoming) -> None:
            self.seen[record.key] = count(self.seen.get(record.key, 0), 1)
            self.context.forward(record.key, self.seen[record.key])

    return Counting


def read_by_several(found: Any, name: str) -> None:
    found.to(f"{name}-1")
    found.filter(lambda k, v: v > 0).to(f"{name}-2")
    found.map_values(lambda v: v + 1).merge(found).to(f"{name}-3")


def test_functions_of_operators_with_state_are_called_once(spark: Any, tmp_path: Path) -> None:
    place = tmp_path / "calls"
    app = App("once")
    one, table = app.stream("one", value=int), app.table("rows", value=int)
    add = noting(place, "reduce", lambda total, value: total + value)
    grouped = one.group_by_key()
    read_by_several(grouped.reduce(add, name="sums").to_stream(), "sums")
    windows = grouped.windowed_by(TumblingWindow(100))
    summed = windows.aggregate(int, noting(place, "window", lambda value, total: total + value), value=int)
    read_by_several(summed.to_stream().map(lambda k, v: (k.key, v), key=str, value=int), "windows")
    looked = noting(place, "join", lambda value, row: value + row)
    read_by_several(one.join(table, looked, value=int), "joined")
    met = one.join(
        app.stream("two", value=int), noting(place, "meet", lambda a, b: a * b), value=int, within=within(50)
    )
    read_by_several(met, "met")
    counting = processor(place)
    read_by_several(one.process(counting, stores=[Store("seen", str, int)], value=int), "processed")
    given = {
        "rows": [("a", 10, 0), ("b", 20, 1), ("a", 10, 2), ("b", 20, 3)],
        "one": [("ab"[n % 2], n + 1, 10 + n) for n in range(8)],
        "two": [("a", 3, 12), ("b", 5, 13)],
    }
    written = app.test(given, batches=2)
    calls = Counter(place.read_text().split())
    assert calls == {"reduce": 6, "window": 8, "join": 8, "meet": 8, "process": 8}
    assert len(written["sums-1"]) == len(written["sums-2"]) == 8 and len(written["sums-3"]) == 16
    assert [each.value for each in written["processed-1"] if each.key == "a"] == [1, 2, 3, 4]
    place.unlink()
    # The reference calls them as often.
    app.test(given, batches=2, on="python")
    assert Counter(place.read_text().split()) == calls
    assert os.path.getsize(place) > 0
