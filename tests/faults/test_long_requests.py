"""No request holds up others, however many elements its arrays have: law L1 of `broker/long_requests.py`."""

import json
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.broker.controller_face import CONTROLLER_TABLE
from ottla.broker.served import APIS
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.faults.by_hand import batch, hand
from tests.faults.long_requests import LongCase, cases
from tests.peers.connection import request_frame
from tests.peers.ottla import OttlaServer
from tests.peers.process import resident_bytes_max

MIB = 1 << 20
HELD_UP_MS_MAX = 3000.0  # on a machine that others use as well; on a free one it is some 50 ms, and was 15 s
GROWTH_BYTES_MAX = 300 * MIB
ANSWER_S_MAX = 120.0
CLIENT, CONTROLLER = "client", "controller"
# Those that took longest before they were served in slices.
WORST = (
    (CLIENT, "Fetch", "topics.partitions", False),
    (CLIENT, "ListOffsets", "topics.partitions", False),
    (CLIENT, "Metadata", "topics", False),
    (CLIENT, "DescribeGroups", "groups", False),
    (CLIENT, "ListGroups", "types_filter", False),
    (CLIENT, "DescribeConfigs", "resources", False),
    (CONTROLLER, "DeleteTopics", "topics", False),
    (CONTROLLER, "AlterPartitionReassignments", "topics.partitions", True),
    (CONTROLLER, "ControllerRegistration", "listeners", False),
)


class Rig:
    """A broker, and an honest client beside what is sent to it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.server = OttlaServer(directory, {"socket.listen.backlog.size": "4096"})

    def __enter__(self) -> "Rig":
        self.server.start()
        with hand(self.server.port) as client:
            for name in ("honest", "known"):
                assert client.create_topic(name) is ErrorCode.NONE
            assert client.produce("known", batch(b"first"))[0] is ErrorCode.NONE
            wanted = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="known")])
            self.topic_id = client.connection.ask(wanted, MetadataResponse, 12).topics[0].topic_id
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()

    def start_honest(self) -> subprocess.Popen[str]:
        """Start the honest client."""
        command = [sys.executable, "-m", "tests.fuzz.honest"]
        arguments = [str(self.server.port), "honest", str(self.server.pid), str(self.directory)]
        return subprocess.Popen(
            command + arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
        )

    def port(self, listener: str) -> int:
        return self.server.port if listener == CLIENT else self.server.controller_port

    def send(self, listener: str, frame: bytes) -> int:
        """Send a frame and return how many bytes it was answered with; none if the connection was closed."""
        with socket.create_connection(("127.0.0.1", self.port(listener)), timeout=ANSWER_S_MAX) as peer:
            try:
                peer.sendall(frame)
                return len(receive(peer))
            except (ConnectionError, EOFError):
                return 0


def receive(peer: socket.socket) -> bytes:
    """One answer, without its size."""
    data = bytearray()
    while len(data) < 4 or len(data) < 4 + struct.unpack_from(">i", data)[0]:
        part = peer.recv(MIB)
        if not part:
            raise EOFError
        data += part
    return bytes(data[4:])


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with Rig(tmp_path) as made:
        yield made


def held_up(rig: Rig, chosen: list[tuple[str, LongCase]]) -> None:
    """Send all of them, one after the other; AssertionError says who held up the honest client."""
    honest = rig.start_honest()
    before = resident_bytes_max(rig.server.pid)
    sent: list[tuple[float, float, str]] = []
    for listener, case in chosen:
        frame = case.frame("known", rig.topic_id)
        began = time.monotonic()
        rig.send(listener, frame)
        sent.append((began, time.monotonic(), f"{listener} {case}"))
        growth = resident_bytes_max(rig.server.pid) - before
        assert growth < GROWTH_BYTES_MAX, f"{growth >> 20} MB more memory: {sent[-1][2]}"
    report = json.loads(honest.communicate(timeout=60)[0])
    late = [
        f"{took} ms for a {what} during {name}"
        for took, what, at in report["slowest"]
        for began, ended, name in sent
        if began - took / 1000 <= at <= ended
    ]
    assert not report["complaint_count"], report
    assert report["held_up_max_ms"] < HELD_UP_MS_MAX, (late, report)
    print(f"held up {report['held_up_max_ms']} ms at most: {late[:1]}")


@pytest.mark.timeout(600)
def test_the_longest_requests_hold_nobody_up(rig: Rig) -> None:
    tables = {CLIENT: APIS, CONTROLLER: CONTROLLER_TABLE}
    chosen = []
    for listener, name, path, known in WORST:
        [case] = [
            each
            for each in cases(tables[listener])
            if (each.api.name, ".".join(each.path), each.known) == (name, path, known)
        ]
        chosen.append((listener, case))
    held_up(rig, chosen)


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("listener", [CLIENT, CONTROLLER])
def test_no_request_holds_anybody_up(rig: Rig, listener: str) -> None:
    table = APIS if listener == CLIENT else CONTROLLER_TABLE
    held_up(rig, [(listener, each) for each in cases(table) if each.api.key != 0])


@pytest.mark.timeout(300)
def test_answers_keep_their_order_and_many_at_once_hold_nobody_up(rig: Rig) -> None:
    """Twenty connections ask at one moment, and each asks for something short behind it."""
    long = FindCoordinatorRequest(coordinator_keys=[f"group {number}" for number in range(20_000)])
    frames = request_frame(long, 6, 1) + request_frame(MetadataRequest(topics=[]), 12, 2)
    frames += request_frame(long, 6, 3)
    honest = rig.start_honest()
    peers = [
        socket.create_connection(("127.0.0.1", rig.server.port), timeout=ANSWER_S_MAX) for _ in range(20)
    ]
    for peer in peers:
        peer.sendall(frames)
    for peer in peers[:3]:
        peer.close()
    for peer in peers[3:]:
        numbers = [receive_exactly(peer) for _ in range(3)]
        assert numbers == [1, 2, 3]
        peer.close()
    report = json.loads(honest.communicate(timeout=60)[0])
    assert not report["complaint_count"], report
    assert report["held_up_max_ms"] < HELD_UP_MS_MAX, report


def receive_exactly(peer: socket.socket) -> int:
    """Read one answer and no byte of the next, and return its number."""
    size = struct.unpack(">i", take(peer, 4))[0]
    return int(struct.unpack_from(">i", take(peer, size))[0])


def take(peer: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = peer.recv(min(size - len(data), MIB))
        assert part, "the connection was closed"
        data += part
    return bytes(data)
