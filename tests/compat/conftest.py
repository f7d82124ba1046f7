"""One server for the whole run, and a topic of its own for each test."""

import itertools
import re
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compat.absence import REASONS, need_kafka
from tests.compat.answers import Pair, Side
from tests.compat.chosen import CHOSEN, SERVERS, MakeTopic
from tests.peers.deadline import eventually
from tests.peers.kafka import KafkaServer
from tests.peers.server import Server

_serial = itertools.count(1)


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
        KafkaServer(tmp_path_factory.mktemp("kafka")),
        server_class(tmp_path_factory.mktemp("other")),
    )
    kafka.cluster_id = other.cluster_id
    with kafka, other:
        yield Pair(Side(kafka), Side(other))


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
