"""The order of a key's rows, and each operator once, on Spark: by Columns, by Python, and over state."""

from pathlib import Path
from typing import Any

import pytest

from ottla.client.record import Record
from ottla.streams import App, Store
from ottla.streams.processor import Incoming, Processor, ProcessorContext

# The first test of a topology waits for Spark to run it.
pytestmark = pytest.mark.timeout(600)

NUMBERS = [("a", n) for n in (1, 9, 2, 8, 3)]


def values(found: dict[str, list[Record]], topic: str) -> list[Any]:
    return [each.value for each in found[topic]]


def python(given: Any) -> Any:
    return given


def branched(app: App, middle: Any) -> None:
    numbers = app.stream("t", value=int)
    small, large = numbers.branch(lambda v: v < 5, middle)
    small.to("o")
    large.to("o")
    small.map_values(lambda v: v * 10).merge(large.select_key(lambda v: "b").filter(lambda v: v > 8)).to(
        "merged"
    )
    numbers.map(lambda k, v: (k + "!", v + 1)).to(lambda k, v: "to-" + k)


@pytest.mark.parametrize("middle", [lambda v: v >= 5, lambda v: python(v) >= 5], ids=["columns", "python"])
def test_what_took_different_branches_is_written_in_its_order(spark: Any, middle: Any) -> None:
    app = App("order")
    branched(app, middle)
    found = app.test({"t": NUMBERS}, batches=2)
    assert values(found, "o") == [1, 9, 2, 8, 3]
    assert [(each.key, each.value) for each in found["merged"]] == [("a", 10), ("b", 9), ("a", 20), ("a", 30)]
    assert values(found, "to-a!") == [2, 10, 3, 9, 4]


def test_columns_spread_without_calling_python() -> None:
    from ottla.streams.lowering.column_fan_out import are_columns_enough
    from ottla.streams.lowering.flow import Flow

    for middle, spreads in ((lambda v: v >= 5, True), (lambda v: python(v) >= 5, False)):
        app = App("order")
        branched(app, middle)
        context: Any = type("Context", (), {"native": False, "wants_old": None})()
        flow = Flow(app.plan(), context)
        assert are_columns_enough(flow, flow.sources[0]) is spreads


class Marking(Processor):
    """Writes a line for each record that it gets."""

    place: Path

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.seen = context.store("seen")

    def process(self, record: Incoming) -> None:
        with self.place.open("a") as file:
            file.write(f"{record.value}\n")
        self.seen[record.key] = self.seen.get(record.key, 0) + 1
        self.context.forward(record.key, self.seen[record.key])


def test_an_operator_that_many_read_runs_once_and_rows_are_in_their_order(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Mine(Marking):
        place = tmp_path / "lines"

    app = App("once")
    numbers = app.stream("t", value=int)
    numbers.map_values(lambda v: v * 100).to("o")
    seen = numbers.process(Mine, stores=[Store("seen", str, int)])
    seen.to("o")
    seen.filter(lambda v: v > 1).to("two")
    seen.group_by_key().reduce(lambda one, other: one + other).to("sums")
    told: list[Any] = []
    numbers.for_each(lambda k, v: told.append(v))
    seen.for_each(lambda k, v: told.append(-v))
    found = app.test({"t": NUMBERS}, batches=2)
    assert (tmp_path / "lines").read_text().split() == ["1", "9", "2", "8", "3"]
    assert values(found, "o") == [100, 1, 900, 2, 200, 3, 800, 4, 300, 5]
    assert values(found, "two") == [2, 3, 4, 5]
    assert values(found, "sums") == [1, 3, 6, 10, 15]
    # The processor was said before the first of them.
    assert told == [-1, 1, -2, 9, -3, 2, -4, 8, -5, 3]


def test_one_key_in_several_operator_partitions(
    spark: Any, broker: Any, topic_name: str, tmp_path: Path
) -> None:
    """On a broker, with state in parts: the rows of each key are in their order, whichever way they took."""
    from ottla.client.blocking import Admin, Consumer, Producer
    from ottla.client.record import TopicPartition

    out = f"{topic_name}-out"
    with Admin(broker.bootstrap) as admin:
        admin.topics.create([topic_name, out], partitions=2)
    keys = [f"k{n}".encode() for n in range(7)]
    with Producer(broker.bootstrap) as producer:
        for n in range(70):
            producer.send(topic_name, str(n).encode(), key=keys[n % 7])
    app = App(topic_name, broker.bootstrap, checkpoint=str(tmp_path), partitions=3)
    lines = app.stream(topic_name)
    lines.to(out)
    counts = lines.group_by_key().count()
    counts.to_stream().map_values(lambda v: f"count {v}", value=str).to(out)
    counts.filter(lambda v: v > 2).to_stream().map_values(
        lambda v: "none" if v is None else f"many {v}", value=str
    ).to(out)
    app.run()
    settings = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}
    found: dict[bytes, list[str]] = {}
    with Consumer(broker.bootstrap, **settings) as consumer:
        places = [TopicPartition(out, each) for each in consumer.partitions_for(out)]
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        while any(consumer.position(each) < ends[each] for each in places):
            for record in consumer.poll(timeout=0.2):
                found.setdefault(record.key, []).append(record.value.decode())
    for at, key in enumerate(keys):
        expected = []
        for n in range(1, 11):
            expected += [str(at + 7 * (n - 1)), f"count {n}"]
            if n > 2:
                expected.append(f"many {n}")
        assert found[key] == expected
