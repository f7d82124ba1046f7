"""The rows of a global table follow a topic of a real broker that is deleted and made anew under its name."""

from collections.abc import Iterator

import pytest

from ottla.client.blocking import Admin, Producer
from ottla.streams import serde
from ottla.streams.lowering.stateful.replica import Place, Replica
from ottla.testing import Broker
from tests.peers.deadline import eventually


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def write(broker: Broker, topic: str, **rows: str | None) -> None:
    with Producer(broker.bootstrap) as producer:
        for key, value in rows.items():
            producer.send(topic, None if value is None else value.encode(), key=key.encode())


@pytest.mark.parametrize("more", [0, 40])
def test_a_topic_that_was_made_anew_is_read_anew(broker: Broker, more: int) -> None:
    topic = f"rows-{more}"
    replica = Replica(Place(topic, broker.bootstrap, (), serde(str), serde(str)))

    def rows() -> dict[str, str]:
        found = replica.refresh()
        return {key: row for key in "abcdz" if (row := found.find(key)) is not None}

    try:
        with Admin(broker.bootstrap) as admin:
            admin.topics.create(topic, partitions=2)
            write(broker, topic, a="1", b="2", c="3")
            assert rows() == {"a": "1", "b": "2", "c": "3"}
            admin.topics.delete(topic)
            eventually(lambda: topic not in admin.topics.list(), 20)
            # Shorter than it was, or longer; and of other partitions.
            admin.topics.create(topic, partitions=3 if more else 2)
            write(broker, topic, d="4", **{f"k{n}": "x" for n in range(more)})
            assert rows() == {"d": "4"}
            write(broker, topic, d=None, a="5")
            assert rows() == {"a": "5"}
    finally:
        replica.close()
