"""A hundred connections ask for far more than they read: the broker's memory stays within its budget, and a client that
reads is answered meanwhile.

Each pattern sends in a moment what would be gigabytes of answers. `ottla.answer.bytes.max` is left as it is by default.
"""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.describe_configs import DescribeConfigsRequest
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.list_offsets import ListOffsetsRequest
from ottla.wire.messages.metadata import MetadataRequest
from tests.faults.by_hand import batch, hand
from tests.fuzz.control import Control
from tests.fuzz.honest import PAUSE_S, HonestClient
from tests.peers.connection import request_frame
from tests.peers.ottla import OttlaServer
from tests.peers.process import resident_bytes, resident_bytes_max

MIB = 1 << 20
BUDGET_BYTES = 256 * MIB  # the default of ottla.answer.bytes.max
CONNECTIONS = 100
PIPELINED = 40
ANYTHING = (1 << 31) - 1
SECONDS = 1.2
# Of what the broker and nobody else was late: the kernel had a processor for both.
HONEST_MS_MAX = 1000.0
PARTITIONS = 50
_RECEIVE_BYTES = 32 << 10
_TOPIC_TYPE = 2
START: dict[int, int] = {}  # memory at the start, by the process: none of the patterns leaves much behind


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaServer]:
    settings = {"socket.listen.backlog.size": "4096"}
    with OttlaServer(tmp_path_factory.mktemp("budget"), settings) as running:
        with hand(running.port) as client:
            for name, partitions in (("long", 1), ("wide", PARTITIONS), ("grows", 1), ("honest", 1)):
                assert client.create_topic(name, partitions) is ErrorCode.NONE
            big = batch(os.urandom(1_000_000))
            for _ in range(64):
                assert client.produce("long", big)[0] is ErrorCode.NONE
            for partition in range(PARTITIONS):
                assert client.produce("wide", big, partition=partition)[0] is ErrorCode.NONE
            assert client.fetch("long", 0)[0] is ErrorCode.NONE
            assert client.produce("grows", batch(b"first"))[0] is ErrorCode.NONE
            client.metadata()
        assert running.pid is not None
        START[running.pid] = resident_bytes(running.pid)
        yield running


def fetch(topic: str = "long", *, partitions: int = 1, offset: int = 0, wait_ms: int = 0, least: int = 0) -> bytes:
    """A Fetch that takes all it can get."""
    parts = [
        FetchRequest.FetchTopic.FetchPartition(
            partition=each, fetch_offset=offset, partition_max_bytes=ANYTHING
        )
        for each in range(partitions)
    ]
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=least,
        max_bytes=ANYTHING,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=parts)],
    )
    return request_frame(request, 12, 7)


def other(request: Message, version: int) -> bytes:
    return request_frame(request, version, 7)


def wait() -> bytes:
    """A Fetch at the end of what there is."""
    return fetch("grows", offset=1, wait_ms=60_000, least=1)


def api_versions() -> bytes:
    return other(ApiVersionsRequest(client_software_name="flood", client_software_version="1"), 3)


def configs() -> bytes:
    """A request of some hundred bytes whose answer is some hundred times as long."""
    resource = DescribeConfigsRequest.DescribeConfigsResource(resource_type=_TOPIC_TYPE, resource_name="long")
    return other(DescribeConfigsRequest(resources=[resource] * 8, include_documentation=True), 4)


def metadata() -> bytes:
    """A request whose answer is some thousand times as long."""
    return other(MetadataRequest(topics=None), 9)


def offsets() -> bytes:
    """Every partition many times over."""
    part = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition
    topic = ListOffsetsRequest.ListOffsetsTopic(
        name="wide", partitions=[part(partition_index=each, timestamp=-1) for each in range(PARTITIONS)]
    )
    return other(ListOffsetsRequest(replica_id=-1, topics=[topic] * 20), 5)


Drive = Callable[[OttlaServer, list[socket.socket]], None]


def never_read(_: OttlaServer, sockets: list[socket.socket]) -> None:
    """Leave all answers where they are."""
    time.sleep(SECONDS)


def read_slowly(_: OttlaServer, sockets: list[socket.socket]) -> None:
    """Take a little of each now and then."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        for each in sockets:
            take(each, 16 << 10)
        time.sleep(0.03)


def read_some(_: OttlaServer, sockets: list[socket.socket]) -> None:
    """Half of them read as fast as they can, half not at all."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        for each in sockets[::2]:
            take(each, 1 << 20)


def take(peer: socket.socket, size: int) -> None:
    with suppress(BlockingIOError, ConnectionError):
        peer.recv(size)


def wake_all(server: OttlaServer, sockets: list[socket.socket]) -> None:
    """What all of them wait for comes."""
    time.sleep(SECONDS / 2)
    with hand(server.port) as client:
        assert client.produce("grows", batch(os.urandom(1_000_000)))[0] is ErrorCode.NONE
    time.sleep(SECONDS / 2)


PATTERNS: dict[str, tuple[list[bytes], Drive]] = {
    "nobody reads": ([fetch()] * PIPELINED, never_read),
    "all read slowly": ([fetch()] * PIPELINED, read_slowly),
    "half of them read": ([fetch()] * PIPELINED, read_some),
    "many partitions": ([fetch("wide", partitions=PARTITIONS)] * PIPELINED, never_read),
    "behind one that waits": ([wait(), *[fetch()] * PIPELINED], never_read),
    "all are woken": ([wait()] * PIPELINED, wake_all),
    "metadata": ([metadata()] * 1000, never_read),
    "configs": ([configs()] * PIPELINED, never_read),
    "offsets": ([offsets()] * PIPELINED, read_slowly),
    "api versions": ([api_versions()] * 4000, never_read),
    "all at once": ([fetch(), metadata(), configs(), fetch("wide", partitions=PARTITIONS)] * 10, read_slowly),
}


def serve_beside(honest: HonestClient, over: threading.Event) -> None:
    """Write, read and ask until it is over."""
    try:
        while not over.wait(PAUSE_S):
            honest.round()
    except Exception as error:  # noqa: BLE001  # whatever it is, the report says it
        honest.complaints.append(f"gave up: {error!r}")


@pytest.mark.parametrize("pattern", PATTERNS)
def test_memory_stays_within_the_budget_and_others_are_served(
    server: OttlaServer, pattern: str, tmp_path: Path
) -> None:
    frames, drive = PATTERNS[pattern]
    assert server.pid is not None
    start = START[server.pid]
    Path(f"/proc/{server.pid}/clear_refs").write_text("5")  # the peak is counted anew
    honest = HonestClient(server.port, "honest", str(server.pid))
    honest.round()
    over = threading.Event()
    beside = threading.Thread(target=serve_beside, args=(honest, over), daemon=True)
    beside.start()
    with Control(tmp_path) as control:
        sockets: list[socket.socket] = []
        try:
            for _ in range(CONNECTIONS):
                peer = socket.socket()
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
                peer.connect(("127.0.0.1", server.port))
                peer.setblocking(False)
                sockets.append(peer)
            for peer in sockets:
                with suppress(BlockingIOError):
                    peer.send(b"".join(frames))
            drive(server, sockets)
            grown = resident_bytes_max(server.pid) - start
        finally:
            for peer in sockets:
                peer.close()
            over.set()
            beside.join(60)
    report = honest.report(control)
    print(f"{pattern}: {grown / MIB:.0f} MB above {start / MIB:.0f}, beside it {report}")
    assert grown < BUDGET_BYTES, f"{grown / MIB:.0f} MB more"
    assert not report["complaint_count"], report
    assert report["held_up_max_ms"] < HONEST_MS_MAX, report
    assert report["requests"] > 3, report
