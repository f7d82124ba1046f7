"""One Ottla process that all journeys go through, or Apache Kafka when COMPAT_SERVER=kafka, which proves the tests."""

import itertools
from collections.abc import Iterator

import pytest

from tests.compat.absence import need_kafka
from tests.compat.chosen import CHOSEN, SERVERS
from tests.journeys.traveller import Traveller
from tests.peers.server import Server

_serial = itertools.count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if CHOSEN == "kafka":
        need_kafka()
    with SERVERS[CHOSEN](tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def traveller(server: Server) -> Iterator[Traveller]:
    with Traveller(server) as going:
        yield going


@pytest.fixture
def topic(traveller: Traveller) -> str:
    """A new topic of three partitions."""
    name = f"journey-{next(_serial)}"
    traveller.create_topic(name, partitions=3)
    return name
