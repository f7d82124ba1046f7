"""Connections of a process: one for each set of settings, made once, and made again after a failure or a fork."""

import asyncio
from types import SimpleNamespace

import pytest

from ottla.client.connections import ClientConnections
from ottla.client.errors import NoBroker
from ottla.client.settings.resolve import resolve
from ottla.spark import connection
from ottla.spark.connection import connected, planning
from tests.unit.client.brokers import Brokers, broker


@pytest.fixture
def network(monkeypatch):
    brokers = Brokers()
    brokers.metadata.brokers = [broker(1, "one")]
    monkeypatch.setattr(
        connection, "ClientConnections", lambda settings: ClientConnections(settings, brokers)
    )
    monkeypatch.setattr(connection, "_pool", None)
    return brokers


def settings(**more):
    quick = {"reconnect.backoff.ms": 1, "reconnect.backoff.max.ms": 2, "default.api.timeout.ms": 200}
    return resolve(
        "consumer", "one:9092", quick | {name.replace("_", "."): each for name, each in more.items()}
    )


def test_the_same_settings_share_a_connection(network):
    first = connected(settings())
    assert connected(settings()) is first
    assert connected(settings(client_id="another")) is not first
    assert first.cluster.id == "c"


def test_work_is_done_on_the_loop(network):
    made = connected(settings())

    async def where():
        return asyncio.get_running_loop()

    assert made.run(where()) is made.run(where())
    assert made.desk is made.desk


def test_what_failed_is_tried_again(network):
    network.down.add("one:9092")
    with pytest.raises(NoBroker, match="one:9092"):
        connected(settings())
    network.down.clear()
    assert connected(settings()).cluster.id == "c"


def test_a_forked_process_begins_anew(network):
    first = connected(settings())
    # What the child of a fork finds: the thread is not there.
    connection._pool.thread = SimpleNamespace(is_alive=False)
    assert connected(settings()) is not first


def test_a_plan_has_less_patience_than_a_task(network, monkeypatch):
    opened = []

    async def refuse(self, timeout_ms=None):
        opened.append(timeout_ms)
        raise NoBroker("nobody is there")

    monkeypatch.setattr(connection.Cluster, "open", refuse)
    unhurried = resolve("consumer", "one:9092", {})
    for connect, given in ((planning, unhurried), (planning, settings()), (connected, unhurried)):
        with pytest.raises(NoBroker):
            connect(given)
    assert opened == [15_000, None, None]
