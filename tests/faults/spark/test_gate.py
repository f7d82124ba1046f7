"""The gate holds what a trap names, at the moment it names, and nothing else."""

import contextlib
import os
import socketserver
import struct
import threading
from collections.abc import Iterator

import pytest

from ottla.wire.message import Message
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.metadata import MetadataRequest
from tests.faults.spark.gate import Caught, Gate, Moment, Trap
from tests.faults.spark.owner import owner
from tests.peers.connection import Connection, Disconnected
from tests.peers.deadline import eventually
from tests.peers.server import HOST, free_ports

VERSION = 3
COMMIT = EndTxnRequest(transactional_id="mine", producer_id=1, producer_epoch=0, committed=True)
ABORT = EndTxnRequest(transactional_id="mine", producer_id=1, producer_epoch=0, committed=False)
ANOTHERS = EndTxnRequest(transactional_id="another's", producer_id=2, producer_epoch=0, committed=True)


class Echo(socketserver.ThreadingTCPServer):
    """Answers each frame with its correlation id, and keeps the keys of what it got."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        self.keys: list[int] = []
        super().__init__((HOST, 0), Answering)


class Answering(socketserver.StreamRequestHandler):
    server: Echo

    def handle(self) -> None:
        while len(size := self.rfile.read(4)) == 4:
            frame = self.rfile.read(struct.unpack(">i", size)[0])
            self.server.keys.append(struct.unpack_from(">h", frame)[0])
            self.wfile.write(struct.pack(">i", 4) + frame[4:8])


@pytest.fixture
def echo() -> Iterator[Echo]:
    with Echo() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def gate(echo: Echo) -> Iterator[Gate]:
    with Gate(free_ports(1)[0], echo.server_address[1]) as made:
        yield made


def ask(line: Connection, request: Message) -> bytes:
    line.send(request, VERSION)
    return line.receive_frame()


def test_without_a_trap_all_passes(gate: Gate, echo: Echo) -> None:
    with Connection(gate.port) as line:
        for _ in range(3):
            assert ask(line, COMMIT)
    assert echo.keys == [26, 26, 26]


@pytest.mark.parametrize(("moment", "reached"), [(Moment.BEFORE, False), (Moment.ANSWERED, True)])
def test_a_commit_is_held_and_the_line_is_cut(gate: Gate, echo: Echo, moment: Moment, reached: bool) -> None:
    at_the_time: list[list[int]] = []
    trap = gate.set(Trap(EndTxnRequest, moment, lambda _: at_the_time.append(list(echo.keys)), "min"))
    with Connection(gate.port) as line, Connection(gate.port) as other:
        for passing in (MetadataRequest(), ABORT, ANOTHERS):
            assert ask(line, passing)
        before = list(echo.keys)
        assert not trap.sprung.is_set()
        with pytest.raises(Disconnected):
            ask(line, COMMIT)
        assert trap.done.wait(5)
        assert at_the_time == [before + [26] * reached]
        # Once only, and others were never touched.
        assert ask(other, COMMIT)
    assert echo.keys == [*before, *[26] * reached, 26]


def test_a_commit_that_is_on_its_way_arrives(gate: Gate, echo: Echo) -> None:
    trap = gate.set(Trap(EndTxnRequest, Moment.SENT, lambda _: None, "mine"))
    with Connection(gate.port) as line:
        with contextlib.suppress(Disconnected):  # the answer and the strike are in a race
            ask(line, COMMIT)
        assert trap.done.wait(5)
        with pytest.raises((Disconnected, OSError)):
            ask(line, COMMIT)
    eventually(lambda: echo.keys == [26])


def test_the_third_is_meant(gate: Gate, echo: Echo) -> None:
    trap = gate.set(Trap(EndTxnRequest, Moment.BEFORE, lambda _: None, "mine", nth=3))
    with Connection(gate.port) as line:
        assert ask(line, COMMIT) and ask(line, COMMIT) and not trap.sprung.is_set()
        with pytest.raises(Disconnected):
            ask(line, COMMIT)
    assert echo.keys == [26, 26]


def test_what_was_held_can_come_late(gate: Gate, echo: Echo) -> None:
    """A dead driver's commit arrives just before its successor introduces itself."""
    held: list[Caught] = []
    gate.set(Trap(EndTxnRequest, Moment.BEFORE, held.append, "mine"))
    with Connection(gate.port) as line, pytest.raises(Disconnected):
        ask(line, COMMIT)

    def deliver(_: Caught) -> None:
        assert gate.send_late(held[0].frame)

    gate.set(Trap(InitProducerIdRequest, Moment.BEFORE, deliver, cut=False))
    with Connection(gate.port) as line:
        assert ask(line, InitProducerIdRequest(transactional_id="mine", transaction_timeout_ms=1000))
        assert ask(line, COMMIT)
    assert echo.keys == [26, 22, 26]


def test_the_owner_of_a_connection(gate: Gate) -> None:
    found: list[int | None] = []
    gate.set(
        Trap(
            EndTxnRequest, Moment.BEFORE, lambda each: found.append(owner(each.client_port, [1, os.getpid()]))
        )
    )
    with Connection(gate.port) as line, pytest.raises(Disconnected):
        ask(line, COMMIT)
    assert found == [os.getpid()]
