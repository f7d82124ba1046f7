"""An app for each kind of operator of the streams DSL, and how fast it goes: a program that `operators.py` runs.

It imports nothing but `ottla` and Python's own, so that it runs on older source trees as well: `PYTHONPATH` says which.
Given JSON as its argument, it prints a line of JSON for each app: its name, records a second and CPU a record.

Only whole micro-batches count, and not the first, in which processes start.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ottla
from ottla import streams
from ottla.streams import App, Processor, Store, TimeLimit

# Older trees call the window Tumbling and the time to live ttl_ms.
HAS_NEW_NAMES = hasattr(streams, "TumblingWindow")
TUMBLING_WINDOW: Any = streams.TumblingWindow if HAS_NEW_NAMES else getattr(streams, "Tumbling")  # noqa: B009
ONE_HOUR: dict[str, Any] = {"ttl": "1 hour"} if HAS_NEW_NAMES else {"ttl_ms": 3_600_000}

SECONDS_MAX = 120.0


@dataclass
class Order:
    """What orders, and visits, are: some 60 bytes of JSON."""

    user: str
    item: int
    amount: float


@dataclass
class Row:
    """What tables are of."""

    name: str
    country: str


@dataclass
class Total:
    """What is gathered."""

    orders: int = 0
    amount: float = 0.0


@dataclass
class Sale:
    """What joins make."""

    country: str
    amount: float


class Rising(Processor):
    """Forwards an order that is larger than the one before it."""

    def init(self, context: Any) -> None:
        self.context = context
        self.before = context.store("before")

    def process(self, record: Any) -> None:
        if record.value.amount > self.before.get(record.key, 0.0):
            self.context.forward(record.key, record.value)
        self.before[record.key] = record.value.amount


def orders(app: App) -> Any:
    return app.stream("orders", value=Order)


def sale(order: Order, row: Row) -> Sale:
    return Sale(row.country, order.amount)


def windows(app: App, **more: Any) -> Any:
    return orders(app).group_by_key().windowed_by(TUMBLING_WINDOW("10 seconds", grace="1 second"), **more)


def unwindowed(table: Any) -> Any:
    return table.to_stream().map(lambda key, value: (key.key, value), key=str, value=int)


def stateless(app: App) -> None:
    kept = orders(app).filter(lambda order: order.amount > 1)
    kept.map_values(lambda order: Sale(order.user, order.amount * 2)).to("out")


def called(app: App) -> None:
    kept = orders(app).filter(lambda order: order.amount > 1 and order.item >= 0)
    kept.map_values(lambda order: Sale(f"{order.user}", order.amount * 2), value=Sale).to("out")


def count(app: App) -> None:
    orders(app).group_by_key().count().to("out")


def aggregate(app: App) -> None:
    grouped = orders(app).group_by(lambda order: order.user)
    grouped.aggregate(Total, lambda order, total: Total(total.orders + 1, total.amount + order.amount)).to(
        "out"
    )


def windowed_count(app: App) -> None:
    unwindowed(windows(app).count()).to("out")


def stream_join(app: App) -> None:
    visits = app.stream("visits", value=Order)
    orders(app).join(
        visits, lambda one, other: Sale(one.user, other.amount), value=Sale, within="2 seconds"
    ).to("out")


def stream_table_join(app: App) -> None:
    orders(app).join(app.table("users", value=Row), sale, value=Sale).to("out")


def table_join(app: App) -> None:
    app.table("orders", value=Order).join(app.table("users", value=Row), sale, value=Sale).to("out")


def foreign_key_join(app: App) -> None:
    items = app.table("items", value=Row)
    app.table("orders", value=Order).join(items, sale, value=Sale, on=lambda order: str(order.item)).to("out")


def process(app: App) -> None:
    orders(app).process(Rising, stores=[Store("before", str, float, **ONE_HOUR)]).to("out")


def suppress(app: App) -> None:
    orders(app).group_by_key().count().suppress(TimeLimit("5 seconds")).to("out")


def close(app: App) -> None:
    unwindowed(windows(app, emit="close").count()).to("out")


# Name, app, and the topics that it reads.
APPS: dict[str, tuple[Callable[[App], None], tuple[str, ...]]] = {
    "stateless": (stateless, ("orders",)),
    "called": (called, ("orders",)),
    "count": (count, ("orders",)),
    "aggregate": (aggregate, ("orders",)),
    "windowed count": (windowed_count, ("orders",)),
    "stream-stream join": (stream_join, ("orders", "visits")),
    "stream-table join": (stream_table_join, ("orders", "users")),
    "table-table join": (table_join, ("orders", "users")),
    "foreign key join": (foreign_key_join, ("orders", "items")),
    "process with a store": (process, ("orders",)),
    "suppress": (suppress, ("orders",)),
    "close": (close, ("orders",)),
}


def _cpu_seconds(pids: list[int]) -> float:
    ticks = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))  # its own, and that of children that have ended
    return ticks / os.sysconf("SC_CLK_TCK")


def _family(pid: int) -> list[int]:
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += _family(int(child))
    return found


def measure(name: str, given: dict[str, Any], directory: str) -> dict[str, Any]:
    """Run an app until it has read all that there is."""
    say, topics = APPS[name]
    expected = sum(given["records"][topic] for topic in topics)
    app = App(
        f"{given['run']}-{name.replace(' ', '-')}", given["bootstrap"], checkpoint=directory,
        partitions=2, master="local[2]",
        source={"maxOffsetsPerTrigger": str(expected // given["batches"])},
        spark={"spark.driver.memory": "2g", "spark.sql.streaming.numRecentProgressUpdates": "1000",
               "spark.local.dir": given["directory"], "spark.ui.enabled": "false"},
    )  # fmt: skip
    say(app)
    running = app.start(block=False)
    try:
        until = time.monotonic() + SECONDS_MAX
        cpu = _cpu_seconds(_family(os.getpid()))
        while sum(each["numInputRows"] for each in running._query.recentProgress) < expected:
            # What made it fail is raised here.
            if running.wait(0.1) or time.monotonic() > until:
                raise TimeoutError(f"{name}: {running.status}")
        cpu = _cpu_seconds(_family(os.getpid())) - cpu
        batches = [dict(each) for each in running._query.recentProgress if each["numInputRows"]][1:]
    finally:
        running.stop()
    rows = sum(each["numInputRows"] for each in batches)
    seconds = sum(each["durationMs"]["triggerExecution"] for each in batches) / 1000
    return {"name": name, "per_s": rows / seconds, "cpu_us": cpu * 1e6 / expected}


def main() -> None:
    """Measure the apps that are asked for, one after another, in one session of Spark."""
    given = json.loads(sys.argv[1])
    assert str(ottla.__file__).startswith(given["tree"]), f"{ottla.__file__} is not of {given['tree']}"
    for number, name in enumerate([given["names"][0], *given["names"]]):
        with tempfile.TemporaryDirectory(dir=given["directory"], ignore_cleanup_errors=True) as directory:
            found = measure(name, {**given, "run": f"{given['run']}-{number}"}, directory)
        # The first starts Spark, and is done again.
        if number:
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
