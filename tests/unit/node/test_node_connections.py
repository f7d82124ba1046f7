"""How many connections a node may have: what the settings say, and what its descriptors allow."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.node.node_connections import RESERVE_MIN, NodeConnections, connections_within
from ottla.node.settings import Settings

PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
}
BROKER = {"process.roles": "broker", "listeners": "PLAINTEXT://:9092"}
CONTROLLER = {"process.roles": "controller", "listeners": "CONTROLLER://:9093"}


def connections_of(descriptors_max: int, **changes: str) -> tuple[NodeConnections, list[str]]:
    """The connections of a node that may have so many descriptors, and what it reports."""
    settings = Settings.from_properties(
        PROPERTIES | {name.replace("_", "."): text for name, text in changes.items()}
    )
    told: list[str] = []
    timers = SimpleNamespace(call_soon=lambda _: None, call_later=lambda *_: None)
    network = SimpleNamespace(pusher=lambda _: None, descriptors_max=lambda: descriptors_max)
    disk = SimpleNamespace(limit_open=lambda files_max: lambda: None)
    world: Any = SimpleNamespace(timers=timers, network=network, disk=disk, report=told.append)
    return NodeConnections(settings, settings.broker_values, world), told


class Peer:
    """As much of a connection as its admission needs."""

    def __init__(self, listener: str) -> None:
        self.peer, self.listener, self.touched, self.closed = "127.0.0.1", listener, 0, False

    def abort(self) -> None:
        self.closed = True


def admitted(group: Any, listener: str, count: int) -> int:
    return sum(group.admit(Peer(listener)) for _ in range(count))


@pytest.mark.parametrize("descriptors_max", [16, 100, 256, 300, 1024, 20_000, 1 << 20, sys.maxsize])
def test_connections_leave_descriptors_for_files(descriptors_max: int) -> None:
    reserve = descriptors_max - connections_within(descriptors_max)
    assert descriptors_max // 4 <= reserve <= max(descriptors_max // 2, 1)
    assert reserve >= min(RESERVE_MIN, descriptors_max // 2)


def test_both_groups_together_stay_within_the_descriptors_and_neither_shuts_out_the_other() -> None:
    both, _ = connections_of(1000)
    clients = admitted(both.clients, "PLAINTEXT", 2000)
    controllers = admitted(both.controllers, "CONTROLLER", 2000)
    assert clients + controllers == connections_within(1000) == 750
    assert controllers == 93
    assert both.clients.refused + both.controllers.refused == 4000 - 750


def test_a_node_of_one_role_has_all_connections_for_it() -> None:
    assert connections_of(1000, **BROKER)[0].clients.open_max == 750
    assert connections_of(1000, **CONTROLLER)[0].controllers.open_max == 750


def test_a_lower_setting_holds_and_a_change_of_it_keeps_the_limit_of_the_descriptors() -> None:
    both, told = connections_of(1000, max_connections="20")
    assert admitted(both.clients, "PLAINTEXT", 2000) == 20 and not told
    both.limit(Settings.from_properties(PROPERTIES | {"max.connections": "5000"}).broker_values)
    assert admitted(both.clients, "PLAINTEXT", 2000) == 750 - 93 - 20


def test_brokers_take_the_place_of_clients_and_no_descriptors_beyond() -> None:
    both, _ = connections_of(
        1000,
        listeners="PLAINTEXT://:9092,BROKERS://:9094,CONTROLLER://:9093",
        inter_broker_listener_name="BROKERS",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,BROKERS:PLAINTEXT,CONTROLLER:PLAINTEXT",
    )
    clients = [Peer("PLAINTEXT") for _ in range(657)]
    assert all(both.clients.admit(each) for each in clients)  # type: ignore[arg-type]
    brokers = 0
    for _ in range(2000):
        brokers += both.clients.admit(Peer("BROKERS"))  # type: ignore[arg-type]
        for gone in [each for each in both.clients.open if each.closed]:
            both.clients.forget(gone)
    assert brokers == len(both.clients.open) == 657
    assert all(each.closed for each in clients)


def test_the_operator_is_told_when_the_setting_is_above_what_the_descriptors_allow() -> None:
    [told] = connections_of(20_000, max_connections="14000")[1]
    assert "max.connections is 14000" in told and "20000 descriptors allow 13125" in told
    assert not connections_of(20_000, max_connections="13125")[1]
    # The default is no wish for a number: it is worth a word where descriptors are few.
    assert not connections_of(20_000)[1]
    assert len(connections_of(1024)[1]) == 1


@pytest.mark.parametrize("descriptors_max", [16, 300, 1024, 1 << 20])
def test_files_and_connections_together_leave_half_of_the_reserve(descriptors_max: int) -> None:
    connections, _ = connections_of(descriptors_max)
    reserve = descriptors_max - connections_within(descriptors_max)
    assert connections.files_max() == descriptors_max - reserve // 2
    connections.clients.open = dict.fromkeys(range(connections.clients.open_max))
    connections.controllers.open = dict.fromkeys(range(connections.controllers.open_max))
    assert connections.files_max() == reserve - reserve // 2 > 0


def test_a_connection_that_comes_takes_a_descriptor_from_the_files() -> None:
    connections, _ = connections_of(1024)
    fitted: list[int] = []
    connections._fit_files = lambda: fitted.append(1)
    connections.accept("PLAINTEXT", lambda *_: None)()
    assert fitted == [1]
