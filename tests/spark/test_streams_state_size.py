"""On Spark's own state store a processor's store with a time to live is as large as its keys are many."""

from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from ottla.client.blocking import Admin, Producer
from ottla.streams import App, Processor, Store
from ottla.streams.processor import Incoming, ProcessorContext
from ottla.testing import Broker

SECONDS_MAX = 200
HOUR_MS = 3_600_000
START_MS = 1_700_000_000_000


class Latest(Processor):
    """Keeps the latest value of each key, for an hour."""

    def init(self, context: ProcessorContext) -> None:
        self.latest = context.store("latest")

    def process(self, record: Incoming) -> None:
        self.latest[record.key] = record.value


def write(broker: Broker, topic: str, keys: int, updates: int, start_ms: int) -> None:
    with Producer(broker.bootstrap) as producer:
        for turn in range(updates):
            for n in range(keys):
                key = f"key-{n:05}".encode()
                producer.send(topic, b"%08d" % turn, key=key, timestamp=start_ms + turn * 100)


def rows_kept(app: App, behind: str) -> int:
    """Run until all is read, and return how many rows Spark's state has then."""
    running = app.start(block=False)
    try:
        until = monotonic() + SECONDS_MAX
        while " lag 0 " not in running.status or not (running.progress or {}).get("stateOperators"):
            assert monotonic() < until and running.is_active, f"{behind}: {running.status}"
            sleep(0.2)
        progress = running.progress
        assert progress is not None
        return sum(each["numRowsTotal"] for each in progress["stateOperators"])
    finally:
        running.stop()


@pytest.mark.timeout(900)
def test_state_is_proportional_to_keys(spark: Any, broker: Broker, topic_name: str, tmp_path: Path) -> None:
    found: dict[tuple[int, int], int] = {}
    # Other numbers of keys with few updates, then many updates.
    for n, (keys, updates) in enumerate([(200, 2), (2_000, 2), (200, 60)]):
        topic = f"{topic_name}-{n}"
        with Admin(broker.bootstrap) as admin:
            admin.topics.create(topic, partitions=1, configs={"retention.ms": "-1"})
        write(broker, topic, keys, updates, START_MS)
        app = App(topic, broker.bootstrap, checkpoint=str(tmp_path / topic), partitions=2)
        app.settings.source["maxOffsetsPerTrigger"] = "2000"  # type: ignore[index]
        kept = Store("latest", str, str, ttl=HOUR_MS)
        app.stream(topic).process(Latest, stores=[kept], name="keeping").to(f"{topic}-out")
        found[keys, updates] = rows_kept(app, topic)
        assert keys <= found[keys, updates] <= keys + 60, found
        # Hours later, and twice so that each partition's slots have passed, nothing is left of the others.
        for hours in (3, 6):
            write(broker, topic, 40, 1, START_MS + hours * HOUR_MS)
        left = rows_kept(app, topic)
        assert 40 <= left <= 40 + 60, (found, left)
