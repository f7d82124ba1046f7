"""The servers that the client is tried on: Ottla and, under `make compat` and where Java is, Apache Kafka.

`server` is shared by the whole run: leave it running, and use names of your own (`topic_name`, `make_topic`).
`mortal` is for tests that kill: a server of its own for each module, running again when a test begins.
`run` runs a coroutine on a loop of its own, and fails when it left a task behind or an error nobody looked at.
"""

import itertools
import re
import signal
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.client.loops import run_alone
from tests.compat.absence import REASONS, need_kafka
from tests.compat.chosen import SERVERS, MakeTopic
from tests.peers.deadline import eventually
from tests.peers.server import Server

_serial = itertools.count(1)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background job ignores it, and so would all commands that are started, and interrupted, here.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Few coordinators, so that the topics behind them are made in a moment, and groups that are assigned at once.
SETTINGS = {
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    # Members that hear of a change with their next heartbeat, and locks that end while a test waits.
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "200",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "5000",
}


@pytest.hookimpl(tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for reason in sorted(REASONS):
        terminalreporter.write_line(f"tests skipped: {reason}")
    # The compatibility tests have the same hook, and once is enough.
    REASONS.clear()


# Ottla under `make test`, and both under `make compat`.
BOTH = [
    pytest.param(name, marks=[pytest.mark.long] * (name == "kafka")) for name in sorted(SERVERS, reverse=True)
]


@pytest.fixture(scope="session", params=BOTH)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One running server that all tests share: first Ottla, then Apache Kafka."""
    if request.param == "kafka":
        need_kafka()
    with SERVERS[request.param](tmp_path_factory.mktemp("server"), SETTINGS) as running:
        yield running


@pytest.fixture(scope="module", params=BOTH)
def mortal_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    if request.param == "kafka":
        need_kafka()
    with SERVERS[request.param](tmp_path_factory.mktemp("mortal"), SETTINGS) as running:
        yield running


@pytest.fixture
def mortal(mortal_server: Server) -> Server:
    """A server that a test may stop, kill and start."""
    if mortal_server.process is None:
        mortal_server.start()
    return mortal_server


@pytest.fixture
def bootstrap(server: Server) -> str:
    return server.bootstrap


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses, fit for a topic, a group or a transactional id."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", request.node.name)[:150].strip("-") + f"-{next(_serial)}"


def create_topic(bootstrap: str, name: str, partitions: int = 1, **settings: object) -> str:
    """Make a topic, and return its name once the broker leads every partition."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    configs = {key.replace("_", "."): str(value) for key, value in settings.items()}
    admin.create_topics([NewTopic(name, num_partitions=partitions, replication_factor=1, config=configs)])[
        name
    ].result(20)

    def led() -> bool:
        found = admin.list_topics(topic=name, timeout=10).topics[name]
        return not found.error and [each.leader for each in found.partitions.values()] == [1] * partitions

    eventually(led)
    return name


@pytest.fixture
def make_topic(server: Server, topic_name: str) -> MakeTopic:
    """Makes a topic named after the test: (partitions, suffix, settings with _ for the dot) to its name."""

    def make(partitions: int = 1, suffix: str = "", **settings: object) -> str:
        return create_topic(server.bootstrap, topic_name + suffix, partitions, **settings)

    return make


@pytest.fixture
def topic(make_topic: MakeTopic) -> str:
    """A topic of one partition."""
    return make_topic()


@pytest.fixture
def run() -> Callable[..., object]:
    """Runs a coroutine function's coroutine to its end: `run(main())`, or `run(main(), uvloop=True)`."""
    return run_alone
