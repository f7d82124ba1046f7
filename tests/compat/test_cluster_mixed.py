"""Nodes of Ottla and of Apache Kafka in one cluster: brokers of either under the controller of the other."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.peers.deadline import eventually
from tests.peers.kafka import KafkaServer, tool
from tests.peers.ottla import OttlaServer
from tests.peers.server import HOST, Server

pytestmark = [pytest.mark.usefixtures("apache_kafka"), pytest.mark.long]

SETTINGS = {
    "offsets.topic.replication.factor": "2",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.num.partitions": "3",
}
PARTITIONS = 4
COUNT = 2_000
_serial = itertools.count(1)


class OttlaBroker(OttlaServer):
    """A broker without a controller of its own."""

    def format_command(self) -> list[str]:
        return _without_voters(super().format_command())


class KafkaBroker(KafkaServer):
    """A broker without a controller of its own."""

    def format_command(self) -> list[str]:
        return _without_voters(super().format_command())


def _without_voters(command: list[str]) -> list[str]:
    return ["--no-initial-controllers" if each == "--standalone" else each for each in command]


class Pair:
    """A controller and broker of one product, and a broker of the other."""

    def __init__(self, directory: Path, head: type[Server], guest: type[Server]) -> None:
        self.head, self.guest = head(directory / "head", SETTINGS), guest(directory / "guest", SETTINGS)
        self.guest.cluster_id = self.head.cluster_id
        self.guest.settings |= {
            "node.id": "2",
            "process.roles": "broker",
            "listeners": f"PLAINTEXT://{HOST}:{self.guest.port}",
            "controller.quorum.bootstrap.servers": f"{HOST}:{self.head.controller_port}",
        }
        self.bootstrap = f"{self.head.bootstrap},{self.guest.bootstrap}"

    def in_sync(self, topic: str, count: int, by: Server | None = None) -> bool:
        admin = AdminClient({"bootstrap.servers": (by or self.head).bootstrap, "log_level": 0})
        found = admin.list_topics(topic=topic, timeout=10).topics[topic].partitions
        return len(found) == PARTITIONS and all(len(each.isrs) == count for each in found.values())


@pytest.fixture(
    scope="module",
    params=[(OttlaServer, KafkaBroker), (KafkaServer, OttlaBroker)],
    ids=["kafka joins ottla", "ottla joins kafka"],
)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = Pair(tmp_path_factory.mktemp("mixed"), *request.param)
    try:
        made.head.start()
        made.guest.start()
        admin = AdminClient({"bootstrap.servers": made.head.bootstrap, "log_level": 0})
        eventually(lambda: len(admin.list_topics(timeout=10).brokers) == 2, seconds_max=30)
        yield made
    finally:
        made.guest.kill()
        made.head.kill()


@pytest.fixture
def topic(pair: Pair) -> str:
    """A topic with a replica on each, made by way of the guest."""
    name = f"mixed-{next(_serial)}"
    admin = AdminClient({"bootstrap.servers": pair.guest.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(name, PARTITIONS, 2)])[name].result(30)
    eventually(lambda: pair.in_sync(name, 2), seconds_max=30)
    return name


def produce(pair: Pair, topic: str, count: int) -> None:
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": pair.bootstrap, "acks": "all", "enable.idempotence": True})
    for number in range(count):
        producer.produce(
            topic,
            b"%d" % number,
            partition=number % PARTITIONS,
            on_delivery=lambda error, _: errors.append(error) if error else None,
        )
        producer.poll(0)
    assert producer.flush(60) == 0
    assert errors == []


def read(pair: Pair, topic: str, count: int, **settings: object) -> int:
    consumer = Consumer(
        {
            "bootstrap.servers": pair.bootstrap,
            "group.id": f"g{next(_serial)}",
            "auto.offset.reset": "earliest",
            **settings,
        }
    )
    seen = 0
    try:
        consumer.subscribe([topic])

        def more() -> bool:
            nonlocal seen
            seen += sum(1 for each in consumer.consume(1000, 0.3) if not each.error())
            return seen >= count

        eventually(more, seconds_max=60)
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return seen


def files(server: Server, topic: str, partition: int) -> bytes:
    return b"".join(
        path.read_bytes() for path in sorted((server.log_dir / f"{topic}-{partition}").glob("*.log"))
    )


def test_both_lead_and_hold_the_same_bytes(pair: Pair, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": pair.head.bootstrap, "log_level": 0})
    leaders = {each.leader for each in admin.list_topics(topic=topic).topics[topic].partitions.values()}
    assert leaders == {1, 2}
    produce(pair, topic, COUNT)
    assert read(pair, topic, COUNT) == COUNT
    assert read(pair, topic, COUNT, **{"group.protocol": "consumer"}) == COUNT
    for partition in range(PARTITIONS):
        eventually(
            lambda at=partition: files(pair.head, topic, at) == files(pair.guest, topic, at) != b""  # type: ignore[misc]
        )


def test_transactions_span_both(pair: Pair, topic: str) -> None:
    producer = Producer({"bootstrap.servers": pair.bootstrap, "transactional.id": topic})
    producer.init_transactions(60)
    for number in range(6):
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.produce(topic, b"%d" % number, partition=partition)
        if number % 2:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
    assert read(pair, topic, 3 * PARTITIONS, **{"isolation.level": "read_committed"}) == 3 * PARTITIONS


@pytest.mark.parametrize("stop", ["stop", "kill"])
def test_a_guest_goes_and_comes_back(pair: Pair, topic: str, stop: str) -> None:
    produce(pair, topic, COUNT)
    getattr(pair.guest, stop)()
    produce(pair, topic, COUNT)
    assert pair.in_sync(topic, 1)
    pair.guest.start()
    eventually(lambda: pair.in_sync(topic, 2), seconds_max=60)
    produce(pair, topic, COUNT)
    assert read(pair, topic, 3 * COUNT) == 3 * COUNT
    for partition in range(PARTITIONS):
        eventually(
            lambda at=partition: files(pair.head, topic, at) == files(pair.guest, topic, at) != b""  # type: ignore[misc]
        )


def test_settings_and_the_quorum_are_known_to_both(pair: Pair, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": pair.guest.bootstrap, "log_level": 0})
    entry = ConfigEntry("retention.ms", "12345", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(30)
    for server in (pair.head, pair.guest):
        eventually(lambda at=server: retention(at, topic) == "12345")  # type: ignore[misc]
        quorum = tool(
            "MetadataQuorumCommand", "--bootstrap-server", server.bootstrap, "describe", "--replication"
        )
        roles = {line.split()[0]: line.split()[-1] for line in quorum.splitlines()[1:] if line.strip()}
        assert roles == {"1": "Leader", "2": "Observer"}


def retention(server: Server, topic: str) -> str | None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 0})
    asked = ConfigResource(ResourceType.TOPIC, topic)
    value: str | None = admin.describe_configs([asked])[asked].result(30)["retention.ms"].value
    return value
