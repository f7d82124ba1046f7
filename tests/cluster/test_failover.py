"""A node dies: the others go on, nothing acknowledged is lost, and it comes back into the ranks."""

import random
import threading
import time
from collections import defaultdict
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from tests.cluster.conftest import create_topic
from tests.peers.cluster import Cluster, running
from tests.peers.deadline import eventually

PARTITIONS = 3
SECONDS_MAX = 10  # for writes to go on after a kill; the figure is measured on a quiet machine


class Load:
    """Writes numbers to every partition, and remembers which were acknowledged, in which order, and when."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.topic = topic
        self.acknowledged: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.last_s: dict[int, float] = {}
        self.errors: list[str] = []
        self._producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "retry.backoff.ms": 20,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "delivery.timeout.ms": 60_000,
                "log_level": 0,
            }
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(90)

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            for partition in range(PARTITIONS):
                self._producer.produce(
                    self.topic, b"%d" % number, partition=partition, on_delivery=self._delivered
                )
            number += 1
            self._producer.poll(0)
            time.sleep(0.005)
        self._producer.flush(60)

    def _delivered(self, error: object, message: Message) -> None:
        if error is not None:
            self.errors.append(str(error))
            return
        partition, offset = message.partition(), message.offset()
        assert partition is not None and offset is not None
        self.acknowledged[partition].append((int(message.value() or b"-1"), offset))
        self.last_s[partition] = time.monotonic()

    def wait_for_writes(self, since_s: float) -> None:
        """Wait until each partition has taken a write after this moment."""
        eventually(
            lambda: all(self.last_s.get(partition, 0) > since_s for partition in range(PARTITIONS)),
            seconds_max=SECONDS_MAX,
        )


def check(cluster: Cluster, load: Load) -> None:
    """All that was acknowledged is there, once, in its place, in the order in which it was written."""
    assert load.errors == []
    for partition in range(PARTITIONS):
        acknowledged = load.acknowledged[partition]
        assert acknowledged
        found = everything(cluster, load.topic, partition, max(offset for _, offset in acknowledged))
        numbers = [number for _, number in sorted(found.items())]
        assert numbers == sorted(set(numbers)), "a record is there twice, or before its elder"
        assert {offset: number for number, offset in acknowledged}.items() <= found.items(), (
            "a record is lost"
        )


def everything(cluster: Cluster, topic: str, partition: int, last_offset: int) -> dict[int, int]:
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": "check", "enable.auto.commit": False}
    )
    found: dict[int, int] = {}
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])

        def more() -> bool:
            for message in consumer.consume(5000, 0.2):
                if message.error() is None:
                    found[message.offset() or 0] = int(message.value() or b"-1")
            return last_offset in found

        eventually(more, seconds_max=60)
    finally:
        consumer.close()
    return found


def kill_in_turn(cluster: Cluster, load: Load, kills: int, seed: int) -> None:
    """Kill nodes, and bring each back before the next: a leader of the topic, any node, and so on."""
    chance = random.Random(seed)
    for turn in range(kills):
        leaders = list(cluster.leaders(load.topic).values())
        victim = chance.choice(leaders if turn % 2 == 0 else list(cluster.nodes))
        if victim not in cluster.nodes:
            victim = chance.choice(list(cluster.nodes))
        cluster.nodes[victim].kill()
        load.wait_for_writes(time.monotonic())
        cluster.nodes[victim].start()
        cluster.wait_in_sync(load.topic, 3)


def test_writes_go_on_when_nodes_die(tmp_path: Path) -> None:
    with running(tmp_path) as cluster:
        with Load(cluster, create_topic(cluster, PARTITIONS)) as load:
            load.wait_for_writes(0)
            kill_in_turn(cluster, load, 3, seed=1)
        check(cluster, load)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_hundred_kills(tmp_path: Path) -> None:
    with running(tmp_path) as cluster:
        with Load(cluster, create_topic(cluster, PARTITIONS)) as load:
            load.wait_for_writes(0)
            kill_in_turn(cluster, load, 100, seed=random.randrange(1 << 30))
        check(cluster, load)


def test_a_stop_hands_over_without_an_error(tmp_path: Path) -> None:
    with running(tmp_path) as cluster:
        with Load(cluster, create_topic(cluster, PARTITIONS)) as load:
            load.wait_for_writes(0)
            for node in cluster.nodes.values():
                node.stop()
                load.wait_for_writes(time.monotonic())
                node.start()
                cluster.wait_in_sync(load.topic, 3)
        check(cluster, load)
