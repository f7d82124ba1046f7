"""A flood of connections on a node with few descriptors: files and the quorum keep theirs."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.faults.by_hand import Hand, batch
from tests.peers.connection import Connection, Disconnected
from tests.peers.deadline import eventually
from tests.peers.ottla import OttlaServer

DESCRIPTORS_MAX = 300


class FewDescriptors(OttlaServer):
    """A node that may have few descriptors, and cannot raise that limit."""

    def start_command(self) -> list[str]:
        lowered = f'ulimit -n {DESCRIPTORS_MAX} && exec "$@"'
        return ["sh", "-c", lowered, "sh", *super().start_command()]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FewDescriptors]:
    with FewDescriptors(tmp_path_factory.mktemp("descriptors")) as running:
        yield running


def test_a_flood_of_connections_leaves_descriptors_for_files_and_the_quorum(server: FewDescriptors) -> None:
    with ExitStack() as stack:
        hand = Hand(server.port)
        stack.enter_context(hand.connection)
        assert use(hand, "before") is ErrorCode.NONE
        flood(stack, hand, server.port)
        eventually(lambda: not is_served(server.port))
        assert descriptors(server) < DESCRIPTORS_MAX * 3 // 4
        for _ in range(3):
            assert is_served(server.controller_port)
        assert use(hand, "during", partitions=8) is ErrorCode.NONE
        flood(stack, hand, server.port)
        flood(stack, hand, server.controller_port)
        eventually(lambda: not is_served(server.controller_port))
        assert descriptors(server) < DESCRIPTORS_MAX
        assert use(hand, "still") is ErrorCode.NONE
    eventually(lambda: is_served(server.port) and is_served(server.controller_port))
    assert "Too many open files" not in server.output_path.read_text()


def test_the_operator_is_told_once_how_many_connections_there_may_be(server: FewDescriptors) -> None:
    said = [line for line in server.output_path.read_text().splitlines() if "max.connections" in line]
    assert len(said) == 1 and f"{DESCRIPTORS_MAX} descriptors" in said[0]


def flood(stack: ExitStack, hand: Hand, port: int) -> None:
    """Connect as often as the node has descriptors; each time before the backlog is full, the node may catch up."""
    for number in range(DESCRIPTORS_MAX):
        if number % 25 == 0:
            hand.metadata("before")
        stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))


def use(hand: Hand, topic: str, partitions: int = 1) -> ErrorCode:
    """Have the quorum write, a directory made for each partition, and files written in it."""
    assert hand.create_topic(topic, partitions) is ErrorCode.NONE
    codes = {hand.produce(topic, batch(b"value"), partition=each)[0] for each in range(partitions)}
    return max(codes)


def descriptors(server: OttlaServer) -> int:
    return len(os.listdir(f"/proc/{server.pid}/fd"))


def is_served(port: int) -> bool:
    """Whether somebody who connects there is answered."""
    try:
        with Connection(port, seconds_max=5) as connection:
            request = ApiVersionsRequest(client_software_name="c", client_software_version="1")
            return connection.ask(request, ApiVersionsResponse, 3).error_code == 0
    except (Disconnected, OSError):
        return False
