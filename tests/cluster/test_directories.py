"""Several directories, of which one fails on one of three nodes: its leaders move, and the node lives on."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from tests.cluster.conftest import create_topic
from tests.peers.cluster import Cluster, OttlaMember
from tests.peers.connection import Connection
from tests.peers.deadline import eventually

pytestmark = pytest.mark.long

PARTITIONS = 12
STORAGE_ERROR = 56
SICK = 2
SECONDS_MAX = 15.0


class FailingMember(OttlaMember):
    """A node whose second directory can be broken."""

    @property
    def frail(self) -> Path:
        return self.directory / "frail"

    def format_command(self) -> list[str]:
        return [*super().format_command(), "--ignore-formatted"]

    def start_command(self) -> list[str]:
        return [sys.executable, "-m", "tests.peers.failing_disk", str(self.frail), str(self.properties_path)]

    def break_down(self) -> None:
        self.frail.with_name("frail.broken").touch()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    well = made.nodes[SICK]
    sick = made.nodes[SICK] = FailingMember(tmp_path / f"node-{SICK}", like=well)
    sick.settings["log.dirs"] = f"{sick.log_dir},{sick.frail}"
    try:
        made.start()
        yield made
    finally:
        for node in made.nodes.values():
            node.kill()


def produce(cluster: Cluster, topic: str) -> None:
    """Write to every partition, and have each write acknowledged by all in sync."""
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "enable.idempotence": True})
    for number in range(PARTITIONS * 20):
        producer.produce(
            topic,
            b"%d" % number,
            partition=number % PARTITIONS,
            on_delivery=lambda error, _: errors.append(error) if error else None,
        )
    assert producer.flush(60) == 0
    assert errors == []


def test_a_directory_fails_and_its_node_lives(cluster: Cluster) -> None:
    sick = cluster.nodes[SICK]
    assert isinstance(sick, FailingMember)
    for _ in range(10):  # where partitions go is chance
        topic = create_topic(cluster, PARTITIONS)
        produce(cluster, topic)
        lost = {number for number in range(PARTITIONS) if (sick.frail / f"{topic}-{number}").is_dir()}
        kept = set(range(PARTITIONS)) - lost
        led = {number for number, leader in cluster.leaders(topic).items() if leader == SICK}
        if led & lost and led & kept:
            break
    assert led & lost and led & kept, "the node leads partitions of both directories"

    sick.break_down()
    broken = time.monotonic()
    produce(cluster, topic)
    # Those who follow from there are out at once, too, long before they would count as lagging.
    assert time.monotonic() - broken < SECONDS_MAX

    def has_moved() -> bool:
        found = {each.partition_index: each for each in cluster.metadata(1, topic).topics[0].partitions}
        return all(
            SICK not in found[number].isr_nodes and found[number].leader_id != SICK for number in lost
        ) and all(SICK in found[number].isr_nodes for number in kept)

    eventually(has_moved, seconds_max=30)
    leaders = cluster.leaders(topic)
    assert {number for number in kept if leaders[number] == SICK} == led & kept, "the others stay"
    offline = cluster.metadata(1, topic).topics[0].partitions
    assert {each.partition_index for each in offline if SICK in each.offline_replicas} == lost

    assert sick.process is not None and sick.process.poll() is None
    with Connection(sick.port) as line:
        answer = line.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, 4)
    assert {each.log_dir: each.error_code for each in answer.results} == {
        str(sick.log_dir): 0,
        str(sick.frail): STORAGE_ERROR,
    }
    produce(cluster, topic)

    # A new disk, empty, in the old one's place: everything comes back to it.
    sick.stop()
    sick.frail.rename(sick.frail.with_name("old"))
    sick.frail.with_name("frail.broken").unlink()
    sick.formatted = False
    sick.start()
    cluster.wait_in_sync(topic, 3)
