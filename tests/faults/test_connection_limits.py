"""Limits on connections, as Kafka has them: no flood of clients shuts out the quorum or the other brokers."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.peers.connection import Connection, Disconnected
from tests.peers.deadline import eventually
from tests.peers.ottla import OttlaServer
from tests.peers.server import free_ports

LIMIT = 20
SPARE_LIMIT = 3


class Ports(OttlaServer):
    """A node with a listener for clients, one with a limit of its own, one for brokers, and one for controllers."""

    spare_port: int = 0
    broker_port: int = 0

    def properties(self) -> dict[str, str]:
        if not self.spare_port:
            self.spare_port, self.broker_port = free_ports(2)
        names = {"PLAINTEXT": self.port, "SPARE": self.spare_port, "BROKERS": self.broker_port}
        spoken = ",".join(f"{name}://127.0.0.1:{port}" for name, port in names.items())
        return super().properties() | {
            "listeners": f"{spoken},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": spoken,
            "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in (*names, "CONTROLLER")),
            "inter.broker.listener.name": "BROKERS",
            "max.connections": str(LIMIT),
            "listener.name.spare.max.connections": str(SPARE_LIMIT),
        }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ports]:
    with Ports(tmp_path_factory.mktemp("limits")) as running:
        yield running


def is_served(port: int) -> bool:
    """Whether somebody who connects there is answered."""
    try:
        with Connection(port, seconds_max=5) as connection:
            ask(connection)
    except (Disconnected, OSError):
        return False
    return True


def ask(connection: Connection) -> None:
    answer = connection.ask(
        ApiVersionsRequest(client_software_name="c", client_software_version="1"), ApiVersionsResponse, 3
    )
    assert answer.error_code == 0


def flood(stack: ExitStack, port: int, count: int) -> list[Connection]:
    return [stack.enter_context(Connection(port)) for _ in range(count)]


def test_a_flood_of_clients_leaves_the_quorum_and_the_brokers_their_connections(server: Ports) -> None:
    with ExitStack() as stack:
        clients = flood(stack, server.port, LIMIT)
        eventually(lambda: not is_served(server.port))
        for _ in range(3):
            assert is_served(server.controller_port)
        # A broker comes in, and one client has to go.
        broker = stack.enter_context(Connection(server.broker_port))
        ask(broker)
        eventually(lambda: sum(map(is_gone, clients)) == 1)
        ask(next(each for each in clients if not is_gone(each)))
    eventually(lambda: is_served(server.port))


def test_a_listener_may_have_a_limit_of_its_own(server: Ports) -> None:
    with ExitStack() as stack:
        flood(stack, server.spare_port, SPARE_LIMIT)
        eventually(lambda: not is_served(server.spare_port))
        assert is_served(server.port)
    eventually(lambda: is_served(server.spare_port))


def is_gone(connection: Connection) -> bool:
    connection.socket.setblocking(False)
    try:
        return connection.socket.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    finally:
        connection.socket.settimeout(5)
