"""One cluster of three nodes for the tests that leave it whole."""

import itertools
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.peers.cluster import Cluster, running

_serial = itertools.count(1)


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture
def make_topic(cluster: Cluster) -> Callable[..., str]:
    return lambda **how: create_topic(cluster, **how)


def create_topic(cluster: Cluster, partitions: int = 3, replicas: int = 3, **settings: str) -> str:
    """A new topic whose replicas are all in sync."""
    name = f"topic-{next(_serial)}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    wish = NewTopic(name, partitions, replicas, config={k.replace("_", "."): v for k, v in settings.items()})
    admin.create_topics([wish])[name].result(30)
    cluster.wait_in_sync(name, replicas)
    return name
