"""Thousands of broken, odd and abandoned frames: they harm nobody but their senders.

While they come, a well-behaved client works on without an error; afterwards the server has as much memory as before,
and its output has not been flooded.
"""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice

import pytest

from ottla.broker.served import APIS
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from ottla.wire.messages.metadata import MetadataRequest
from tests.faults.by_hand import hand
from tests.faults.bystander import Bystander
from tests.faults.hostile import (
    CORRELATION,
    FETCH,
    frames_that_are_none,
    mutate,
    odd_requests,
    plain_request,
    unknown_apis,
)
from tests.faults.seeds import count, seeded
from tests.peers.connection import Connection, Disconnected, request_frame
from tests.peers.deadline import eventually
from tests.peers.ottla import OttlaServer

MIB = 1 << 20
GROWTH_BYTES_MAX = 20 * MIB
OUTPUT_BYTES_MAX = 50_000
TIMES = count("OTTLA_TIMES", 1)
ANSWER_SECONDS_MAX = 5.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaServer]:
    # With Kafka's backlog of 50 it is the kernel of the attacker that waits, a second each time.
    settings = {"socket.listen.backlog.size": "4096"}
    with OttlaServer(tmp_path_factory.mktemp("hostile"), settings) as running:
        with hand(running.port) as client:
            assert client.create_topic("victim", 2) is ErrorCode.NONE
            assert client.create_topic("bystander") is ErrorCode.NONE
        warm_up(running)
        yield running


def warm_up(server: OttlaServer) -> None:
    """Have every codec compiled, so that what grows afterwards grows for another reason."""
    for api in APIS:
        for version in api.versions:
            with Connection(server.port) as connection, suppress(Disconnected, TimeoutError):
                connection.send_bytes(plain_request(api.request, version))
                # A produce of defaults has acks=0.
                connection.socket.settimeout(1 if api.key else 0.01)
                connection.receive_frame()


@contextmanager
def unharmed(server: OttlaServer) -> Iterator[None]:
    """Check that the server is, after the block, what it was before, and that a bystander has noticed nothing."""
    before = server.resident_bytes()
    printed = server.output_path.stat().st_size
    with hand(server.port) as client:
        end_offset = client.end_offset("bystander")
    with Bystander(server.bootstrap, "bystander", end_offset) as bystander:
        eventually(lambda: bystander.read > end_offset)
        yield
        seen = bystander.read
        eventually(lambda: bystander.read > seen + 5)
    assert not bystander.complaints, bystander.complaints[:5]
    assert bystander.slowest_seconds < 3, f"a record took {bystander.slowest_seconds:.1f} s"
    eventually(lambda: server.resident_bytes() - before < GROWTH_BYTES_MAX, 20)
    with server.output_path.open(errors="replace") as output:
        output.seek(printed)
        said = output.read()
    assert "Traceback" not in said, said[-3000:]
    broken = [line for line in said.splitlines() if " failed: " in line]
    assert not broken, f"{len(broken)} handlers broke, the first: {broken[0]}"
    assert len(said) < OUTPUT_BYTES_MAX, f"{len(said)} bytes were printed, of which the last: {said[-300:]}"


def answered_or_closed(connection: Connection, what: str) -> bool:
    """Wait for the answer; say whether the connection is still of use."""
    try:
        frame = connection.receive_frame()
    except (Disconnected, OSError) as error:
        assert not isinstance(error, TimeoutError), f"{what} was neither answered nor refused"
        return False
    (number,) = struct.unpack_from(">i", frame)
    assert number == CORRELATION, f"{what} was answered with correlation id {number}"
    return True


def test_frames_that_are_none(server: OttlaServer) -> None:
    chance = seeded(__file__)
    with unharmed(server):
        for data in islice(frames_that_are_none(chance), 3000 * TIMES):
            with suppress(OSError), Connection(server.port) as connection:
                connection.send_bytes(data)
                if chance.random() < 0.1:
                    connection.socket.shutdown(socket.SHUT_WR)
                    connection.socket.recv(100)


@pytest.mark.parametrize("size", [-1, -(1 << 31), 104_857_601, (1 << 31) - 1])
def test_impossible_sizes_close_the_connection(server: OttlaServer, size: int) -> None:
    with Connection(server.port, seconds_max=ANSWER_SECONDS_MAX) as connection:
        connection.send_bytes(struct.pack(">i", size))
        assert connection.closed_by_server()


def test_unknown_apis_and_versions(server: OttlaServer) -> None:
    with unharmed(server):
        for frame in unknown_apis():
            with Connection(server.port, seconds_max=ANSWER_SECONDS_MAX) as connection:
                connection.send_bytes(frame)
                assert connection.closed_by_server(), frame
        for version in (9, 99, 32767, -1):
            with Connection(server.port, seconds_max=ANSWER_SECONDS_MAX) as connection:
                connection.send_bytes(struct.pack(">ihhih", 10, 18, version, 7, -1))
                answer = connection.receive(ApiVersionsResponse, 0, 7)
                assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
                assert connection.ask(ApiVersionsRequest(), ApiVersionsResponse, 0).error_code == 0


@pytest.mark.parametrize(
    "rounds",
    [pytest.param(15 * TIMES, id="short"), pytest.param(300, id="soak", marks=pytest.mark.long)],
)
def test_odd_requests_are_answered(server: OttlaServer, rounds: int) -> None:
    """Well-formed requests with values from the edges: each gets an answer, and none breaks a handler."""
    chance = seeded(__file__)
    with hand(server.port) as client:
        topic_id = client.metadata("victim").topics[0].topic_id or bytes(16)
    with unharmed(server):
        connection = Connection(server.port, seconds_max=ANSWER_SECONDS_MAX)
        for key, version, frame in odd_requests(chance.randrange(1 << 30), rounds, "victim", topic_id):
            connection.send_bytes(frame)
            if key == 0:
                # With acks=0 there is no answer to wait for, and the connection may be closed.
                connection.close()
                connection = Connection(server.port, seconds_max=ANSWER_SECONDS_MAX)
            elif not answered_or_closed(connection, f"API {key} v{version}, {frame[:200].hex()}"):
                connection = Connection(server.port, seconds_max=ANSWER_SECONDS_MAX)
        connection.close()


@pytest.mark.parametrize(
    "rounds",
    [pytest.param(30 * TIMES, id="short"), pytest.param(600, id="soak", marks=pytest.mark.long)],
)
def test_mutated_requests_are_answered_or_refused(server: OttlaServer, rounds: int) -> None:
    """Broken bytes behind a good header, for every API and version."""
    chance = seeded(__file__)
    with hand(server.port) as client:
        topic_id = client.metadata("victim").topics[0].topic_id or bytes(16)
    with unharmed(server):
        for key, version, frame in odd_requests(chance.randrange(1 << 30), rounds, "victim", topic_id):
            mutated = mutate(frame, chance)
            with Connection(server.port, seconds_max=ANSWER_SECONDS_MAX) as connection:
                connection.send_bytes(mutated)
                whole = struct.unpack_from(">i", mutated)[0] + 4 == len(mutated)
                # A fetch may have been told to wait, a produce not to answer, and a frame that is not whole never ends.
                if whole and key not in (0, FETCH):
                    answered_or_closed(connection, f"API {key} v{version}, {mutated[:200].hex()}")


def test_refusals_leave_nothing_behind(server: OttlaServer) -> None:
    """Asking for what is not there, thousands of times, costs no memory that stays."""
    topic = ListOffsetsRequest.ListOffsetsTopic
    parts = [topic.ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(100)]
    request = ListOffsetsRequest(replica_id=-1, topics=[topic(name="absent", partitions=parts)])
    with hand(server.port) as client:
        client.connection.ask(request, ListOffsetsResponse, 5)
        before = server.resident_bytes()
        for _ in range(1000):
            client.connection.ask(request, ListOffsetsResponse, 5)
        grown = server.resident_bytes() - before
    assert grown < 4 * MIB, f"{grown >> 10} KB for 100,000 refusals"


def test_truncated_and_abandoned_frames(server: OttlaServer) -> None:
    """Connections that are dropped in the middle of a frame, politely or not."""
    chance = seeded(__file__)
    frame = request_frame(MetadataRequest(), 12, CORRELATION) * 3
    with unharmed(server):
        for number in range(3000 * TIMES):
            with suppress(OSError), Connection(server.port) as connection:
                if number % 2:
                    # A reset instead of a farewell.
                    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.send_bytes(frame[: chance.randrange(len(frame))])
        with Connection(server.port) as connection:
            connection.send_bytes(request_frame(ApiVersionsRequest(), 3, CORRELATION))
            assert answered_or_closed(connection, "ApiVersions")


def test_half_sent_frames_cost_what_was_sent(server: OttlaServer) -> None:
    """Hundreds of peers that promise ninety megabytes, send a little, and stay."""
    chance = seeded(__file__)
    with unharmed(server):
        before = server.resident_bytes()
        peers = [Connection(server.port) for _ in range(400)]
        sent = 0
        for peer in peers:
            part = chance.randbytes(chance.choice((1, 3, 20, 3000)))
            peer.send_bytes(struct.pack(">i", 90 * MIB) + part)
            sent += len(part)
        with hand(server.port) as client:
            client.metadata()
        grown = server.resident_bytes() - before
        # A first buffer each, and no more.
        assert grown < len(peers) * 80_000, f"{grown >> 20} MB for {sent} bytes of {len(peers)} connections"
        for peer in peers:
            peer.close()


def test_drop_by_drop(server: OttlaServer) -> None:
    """One byte at a time is slow, and served."""
    frame = request_frame(ApiVersionsRequest(client_software_name="drop", client_software_version="1"), 3, 1)
    with unharmed(server), Connection(server.port) as connection:
        for _ in range(5):
            for byte in frame:
                connection.send_bytes(bytes([byte]))
            assert connection.receive(ApiVersionsResponse, 3).error_code == 0


def test_peers_that_do_not_read(server: OttlaServer) -> None:
    """Whoever asks and asks without reading the answers is not read from any more."""
    ask = request_frame(MetadataRequest(topics=None), 12, 1) * 200
    with unharmed(server):
        before = server.resident_bytes()
        deaf = []
        for _ in range(10):
            connection = Connection(server.port, seconds_max=0.2)
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            with suppress(TimeoutError):
                for _ in range(500):
                    connection.send_bytes(ask)
            deaf.append(connection)
        grown = server.resident_bytes() - before
        for connection in deaf:
            connection.close()
        assert grown < 100 * MIB, f"{grown >> 20} MB for {len(deaf)} peers that do not read"


def test_a_greedy_peer_does_not_starve_the_others(server: OttlaServer) -> None:
    """Of thousands of requests in one packet some are served, then it is somebody else's turn."""
    with hand(server.port) as client:
        for number in range(20):
            client.create_topic(f"wide-{number}", 5)
    ask = request_frame(MetadataRequest(topics=None), 12, 1)
    with Connection(server.port) as greedy, Connection(server.port) as modest:
        greedy.send_bytes(ask)
        size = len(greedy.receive_frame()) + 4
        drain = Drain(greedy.socket)
        greedy.send_bytes(ask * 8000)
        served = []
        for _ in range(5):
            before = drain.received
            modest.ask(ApiVersionsRequest(), ApiVersionsResponse, 0)
            served.append((drain.received - before) // size)
        assert max(served) < 1500, f"the others were served {max(served)} requests meanwhile"


class Drain:
    """Reads a socket to its end and counts."""

    def __init__(self, source: socket.socket) -> None:
        self.received = 0
        self._source = source
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with suppress(OSError):
            while data := self._source.recv(1 << 20):
                self.received += len(data)


def test_many_connections_come_and_go(server: OttlaServer) -> None:
    """Thousands at once, some idle, some in the middle of a frame, all gone at the same moment."""
    chance = seeded(__file__)
    with unharmed(server):
        for _ in range(2 * TIMES):
            peers = []
            for _ in range(1500):
                peer = Connection(server.port)
                peer.send_bytes(b"\0\0\0\x20" + bytes(chance.randrange(30)))
                peers.append(peer)
            for peer in peers:
                peer.close()
