"""One server for the whole run, and a topic of its own for each test."""

import itertools
import re
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compat.absence import REASONS, kafka_absent, need_kafka
from tests.compat.answers import Pair, Side
from tests.compat.asking_groups import stage_groups
from tests.compat.asking_share import stage_share
from tests.compat.asking_transactions import stage_transactions
from tests.compat.chosen import CHOSEN, SERVERS, MakeTopic
from tests.compat.rows import Scene, Scenes
from tests.peers.deadline import eventually
from tests.peers.kafka import KafkaServer
from tests.peers.server import Server

_serial = itertools.count(1)

# What the two servers are set to that answer the same questions: groups that are soon full and wait for nothing,
# members that are not taken for gone, and few coordinators.
ANSWERING = {
    "group.max.size": "2",
    "group.consumer.max.size": "2",
    "group.share.max.size": "2",
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "group.consumer.max.session.timeout.ms": "600000",
    "group.consumer.session.timeout.ms": "600000",
    "group.share.max.session.timeout.ms": "600000",
    "group.share.session.timeout.ms": "600000",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for reason in sorted(REASONS):
        terminalreporter.write_line(f"compatibility tests skipped: {reason}")


@pytest.fixture(scope="session")
def server_class() -> type[Server]:
    """The product under test."""
    if CHOSEN == "kafka":
        need_kafka()
    return SERVERS[CHOSEN]


@pytest.fixture(scope="session")
def server(server_class: type[Server], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One running server that all tests share."""
    with server_class(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="session")
def pair(server_class: type[Server], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Apache Kafka beside the server under test, of the same cluster id, to be asked the same questions."""
    need_kafka()
    kafka, other = (
        KafkaServer(tmp_path_factory.mktemp("kafka"), ANSWERING),
        server_class(tmp_path_factory.mktemp("other"), ANSWERING),
    )
    kafka.cluster_id = other.cluster_id
    with kafka, other:
        yield Pair(Side(kafka), Side(other))


@pytest.fixture(scope="session")
def sides(
    request: pytest.FixtureRequest, server_class: type[Server], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Side]]:
    """The server under test, last, and Apache Kafka before it where that can be run."""
    absent = kafka_absent()
    if absent is None:
        pair: Pair = request.getfixturevalue("pair")
        yield [pair.kafka, pair.other]
        return
    REASONS.add(f"{absent}; answers were checked, and not compared")
    with server_class(tmp_path_factory.mktemp("alone"), ANSWERING) as running:
        yield [Side(running)]


def _staged(sides: list[Side], stage: Callable[[Scene], None]) -> Iterator[Scenes]:
    scenes = Scenes(Scene(side) for side in sides)
    for scene in scenes:
        stage(scene)
    yield scenes
    for scene in scenes:
        scene.close()


@pytest.fixture(scope="session")
def group_scenes(sides: list[Side]) -> Iterator[Scenes]:
    """Groups of each kind and state on each side."""
    yield from _staged(sides, stage_groups)


@pytest.fixture(scope="session")
def transaction_scenes(sides: list[Side]) -> Iterator[Scenes]:
    """Transactional ids in each state that lasts on each side."""
    yield from _staged(sides, stage_transactions)


@pytest.fixture(scope="session")
def share_scenes(sides: list[Side]) -> Iterator[Scenes]:
    """Share groups on each side."""
    yield from _staged(sides, stage_share)


@pytest.fixture
def bootstrap(server: Server) -> str:
    return server.bootstrap


@pytest.fixture
def apache_kafka() -> None:
    """Skips the test where Apache Kafka cannot be run."""
    need_kafka()


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", request.node.name)[:150].strip("-") + f"-{next(_serial)}"


@pytest.fixture(scope="session")
def admin(server: Server) -> AdminClient:
    return AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 0})


def leaders(admin: AdminClient, topic: str) -> list[int]:
    """The leader of each partition, as the broker tells; none while it does not know the topic."""
    found = admin.list_topics(topic=topic, timeout=10).topics[topic]
    return [] if found.error else [each.leader for each in found.partitions.values()]


@pytest.fixture
def make_topic(admin: AdminClient, topic_name: str) -> MakeTopic:
    """Makes a topic named after the test."""

    def make(partitions: int = 1, suffix: str = "", **settings: object) -> str:
        name = topic_name + suffix
        configs = {key.replace("_", "."): str(value) for key, value in settings.items()}
        new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=configs)
        admin.create_topics([new])[name].result(20)
        # The controller has answered; the broker learns of it a moment later.
        eventually(lambda: leaders(admin, name) == [1] * partitions)
        return name

    return make


@pytest.fixture
def topic(make_topic: MakeTopic) -> str:
    """A topic of one partition."""
    return make_topic()
