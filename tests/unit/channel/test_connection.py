"""Frames in, replies out, in order, within memory that follows what arrived."""

import struct
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.channel.connection import Connection
from ottla.channel.connections import HELD_BYTES_MAX, TURN_COST_MAX, Connections
from ottla.channel.swift import IS_HERE, SwiftConnection

TURNS = []  # what is to be called in the loop's next turn
KIND = [Connection]


@pytest.fixture(scope="module", params=[Connection, SwiftConnection], ids=["python", "compiled"], autouse=True)
def kind(request):
    """Every test is one of the class in Python and of its compiled twin."""
    if request.param is SwiftConnection and not IS_HERE:
        pytest.skip("the compiled part was not built")
    KIND[:] = [request.param]


def next_turn():
    turns, TURNS[:] = list(TURNS), []
    for turn in turns:
        turn()


class Transport:
    """A transport that remembers what was written to it."""

    def __init__(self, peer: str = "127.0.0.1") -> None:
        self.peer = peer
        self.written = bytearray()
        self.writes = 0
        self.parts: list[bytes] = []
        self.ended = False
        self.closed = False
        self.reading = True
        self.buffered = 0

    def get_write_buffer_size(self) -> int:
        return self.buffered

    def get_extra_info(self, name: str) -> tuple[str, int]:
        return (self.peer, 1)

    def set_write_buffer_limits(self, high: int) -> None:
        self.high = high

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.writes += 1
        self.written += data

    def writelines(self, parts: list[bytes]) -> None:
        assert not self.closed
        self.writes += 1
        self.parts += parts
        for part in parts:
            self.written += part

    def close(self) -> None:
        self.closed = True

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.ended = True

    def is_closing(self) -> bool:
        return self.closed

    abort = close

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


class Later:
    """A reply that is made ready by the test."""

    def __init__(self) -> None:
        self.parts: list[bytes] | None = None


def connect(serve, *, frame_bytes_max=1 << 20, total_max=10, per_address_max=10, connections=None):
    connections = connections or Connections(
        frame_bytes_max=frame_bytes_max,
        total_max=total_max,
        per_address_max=per_address_max,
        call_soon=TURNS.append,
    )
    connection = KIND[0](connections, "PLAINTEXT", serve)
    transport = Transport()
    connection.connection_made(transport)
    return connection, transport


def feed(connection: Connection, data: bytes) -> None:
    """Deliver bytes as a loop does: into the buffer the connection offers, as many as fit."""
    while data and not connection.closed:
        buffer = connection.get_buffer(-1)
        taken = min(len(buffer), len(data))
        buffer[:taken] = data[:taken]
        connection.buffer_updated(taken)
        data = data[taken:]


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def echo(connection, buffer, start, end):
    connection.reply([bytes(buffer[start:end])])


def test_who_waited_is_answered_after_the_last_frame_and_before_the_sender():
    told = []

    def serve(connection, buffer, start, end):
        name = bytes(buffer[start:end])
        told.append(name)
        if name.startswith(b"wakes"):
            connection.connections.soon(lambda: told.append(b"due to " + name))
        connection.reply([b"x"])

    def push(parts):
        told.append(b"".join(parts))
        return sum(map(len, parts))

    connections = Connections(
        frame_bytes_max=100, total_max=3, per_address_max=3, call_soon=TURNS.append, pusher=lambda _: push
    )
    connection, transport = connect(serve, connections=connections)
    feed(connection, frame(b"wakes 1") + frame(b"wakes 2") + frame(b"3"))
    assert told == [b"wakes 1", b"wakes 2", b"3", b"due to wakes 1", b"due to wakes 2", b"xxx"]
    assert not transport.writes
    TURNS.clear()
    connections.soon(lambda: told.append(b"later"))
    assert len(TURNS) == 1  # outside of a read it is the loop's turn that ends


@pytest.mark.parametrize("taken", [0, 1, 4, 6])
def test_what_the_kernel_does_not_take_goes_to_the_transport(taken):
    pushed = []

    def push(parts):
        data = b"".join(parts)[:taken]
        pushed.append(data)
        return len(data)

    connections = Connections(
        frame_bytes_max=100, total_max=3, per_address_max=3, call_soon=TURNS.append, pusher=lambda _: push
    )
    connection, transport = connect(
        lambda c, *_: c.reply([b"ab", bytearray(b"cd"), b"ef"]), connections=connections
    )
    feed(connection, frame(b"?"))
    assert b"".join(pushed) + transport.written == b"abcdef"
    transport.buffered = 1
    feed(connection, frame(b"?"))  # never past what the transport holds back
    assert len(pushed) == 1
    assert transport.written.endswith(b"abcdef")


@pytest.mark.parametrize("taken", [0, 1, 80_000, 80_001, 80_003, 120_000, 160_003])
def test_what_is_left_of_large_buffers_is_not_copied(taken):
    parts = [b"a" * 80_000, bytearray(b"bcd"), memoryview(b"e" * 80_000)]
    connections = Connections(
        frame_bytes_max=100,
        total_max=3,
        per_address_max=3,
        call_soon=TURNS.append,
        pusher=lambda _: lambda parts: takes.pop() if takes else 0,
    )
    takes = [taken]
    connection, transport = connect(lambda c, *_: c.reply(list(parts)), connections=connections)
    feed(connection, frame(b"?"))
    assert transport.written == b"".join(parts)[taken:]
    origins = [parts[0], parts[1], parts[2].obj]
    left = [memoryview(each).obj for each in transport.parts]
    assert all(any(each is origin for origin in origins) for each in left)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.binary(max_size=200), max_size=20),
    st.lists(st.integers(1, 50), min_size=1, max_size=30),
)
def test_frames_come_whole_however_the_bytes_are_cut(payloads, cuts):
    seen = []
    connection, _ = connect(lambda c, buf, a, b: seen.append(bytes(buf[a:b])))
    data = b"".join(map(frame, payloads))
    position = turn = 0
    while position < len(data):
        cut = cuts[turn % len(cuts)]
        feed(connection, data[position : position + cut])
        position += cut
        turn += 1
    assert seen == payloads


def test_a_frame_larger_than_the_shared_buffer_arrives_whole():
    seen = []
    connection, _ = connect(lambda c, buf, a, b: seen.append(bytes(buf[a:b])), frame_bytes_max=64 << 20)
    payload = bytes(range(256)) * (40 << 12)  # 40 MiB, over the size that is allocated at once
    feed(connection, frame(payload) + frame(b"next"))
    assert seen == [payload, b"next"]


def test_memory_follows_bytes_that_arrived_not_the_length_claimed():
    connection, _ = connect(echo, frame_bytes_max=1 << 30)
    feed(connection, struct.pack(">i", 1 << 30) + b"only this")
    assert len(connection._frame) <= 64 << 10


def test_a_spare_buffer_is_longer_than_its_frame_and_no_byte_of_the_last_one_is_served():
    seen = []
    connection, _ = connect(lambda c, buf, a, b: seen.append(bytes(buf[a:b])))
    payloads = [b"a" * 900_000, b"b" * 700_000, b"c" * 400_000, b"d" * 10]
    for payload in payloads:
        feed(connection, frame(payload))
    assert seen == payloads
    assert len(connection.connections.receive._spares) == 1


@pytest.mark.parametrize("size", [-1, (1 << 20) + 1, 2**31 - 1])
@pytest.mark.parametrize("torn", [False, True])
def test_an_impossible_size_closes(size, torn):
    connection, transport = connect(echo)
    data = struct.pack(">i", size)
    for piece in (data[:2], data[2:]) if torn else (data,):
        feed(connection, piece)
    assert transport.closed


def test_replies_leave_in_the_order_of_their_requests():
    waiting = []

    def serve(connection, buffer, start, end):
        if buffer[start] == ord("w"):
            waiting.append(Later())
            connection.owe(waiting[-1])
        else:
            connection.reply([bytes(buffer[start:end])])

    connection, transport = connect(serve)
    feed(connection, frame(b"a") + frame(b"w1") + frame(b"b") + frame(b"w2") + frame(b"c"))
    assert transport.written == b"a"
    waiting[1].parts = [b"W2"]
    connection.settle()
    assert transport.written == b"a"
    waiting[0].parts = [b"W", b"1"]
    connection.settle()
    assert transport.written == b"aW1bW2c"


def test_answers_to_one_read_leave_in_one_write():
    connection, transport = connect(echo)
    feed(connection, b"".join(frame(b"%03d" % n) for n in range(60)))
    assert transport.writes == 1
    assert bytes(transport.written) == b"".join(b"%03d" % n for n in range(60))


def test_what_was_answered_before_a_close_is_still_sent():
    def serve(connection, buffer, start, end):
        connection.reply([bytes(buffer[start:end])])
        if buffer[start] == ord("x"):
            connection.close()

    connection, transport = connect(serve)
    feed(connection, frame(b"a") + frame(b"x") + frame(b"b"))
    assert bytes(transport.written) == b"ax"
    assert transport.closed


def test_everybody_who_asked_hears_of_the_end_once():
    heard = []
    connection, _ = connect(lambda *_: None)
    connection.on_close += [lambda: heard.append("one"), lambda: heard.append("two")]
    connection.connection_lost(None)
    assert heard == ["one", "two"]
    assert not connection.on_close


def test_a_greedy_peer_gets_a_share_of_each_turn():
    seen = []
    connection, transport = connect(lambda c, buf, a, b: seen.append(bytes(buf[a:b])))
    payloads = [b"%04d" % n for n in range(600)]
    feed(connection, b"".join(map(frame, payloads)))
    assert len(seen) == 64
    assert not transport.reading
    while TURNS:
        next_turn()
    assert seen == payloads
    assert transport.reading


def test_hanging_up_sends_what_is_owed_first_and_reads_the_rest_away():
    connection, transport = connect(echo)
    feed(connection, frame(b"a"))
    connection.stall()
    connection.hang_up()
    assert (bytes(transport.written), transport.ended, transport.reading) == (b"a", True, True)
    buffer = connection.get_buffer(-1)
    buffer[:5] = frame(b"b")
    connection.buffer_updated(5)
    assert bytes(transport.written) == b"a"
    assert not transport.closed
    connection.close()
    assert transport.closed


def test_a_peer_with_too_many_open_requests_waits_and_loses_nothing():
    waiting = []

    def serve(connection, buffer, start, end):
        later = Later()
        later.answer = bytes(buffer[start:end])
        waiting.append(later)
        connection.owe(later)

    connection, transport = connect(serve)
    payloads = [b"%04d" % n for n in range(1000)]
    feed(connection, b"".join(map(frame, payloads)))
    while TURNS:
        next_turn()
    assert not transport.reading
    assert len(waiting) == 128
    while any(later.parts is None for later in waiting):
        for later in waiting:
            later.parts = [later.answer]
        connection.settle()
        while TURNS:
            next_turn()
    assert bytes(transport.written) == b"".join(payloads)
    assert transport.reading


def test_a_peer_that_does_not_read_is_not_read_from():
    seen = []

    def serve(connection, buffer, start, end):
        seen.append(bytes(buffer[start:end]))
        if seen[-1] == b"2":
            connection.pause_writing()
            connection.reply([bytes(HELD_BYTES_MAX + 1)])

    connection, transport = connect(serve)
    feed(connection, frame(b"1") + frame(b"2") + frame(b"3") + frame(b"4")[:4])
    assert seen == [b"1", b"2"]
    assert not transport.reading
    assert connection.held == connection.connections.answers.total == HELD_BYTES_MAX + 1
    next_turn()
    assert seen == [b"1", b"2"]
    connection.resume_writing()
    assert seen == [b"1", b"2", b"3"]
    assert connection.held == connection.connections.answers.total == 0
    feed(connection, frame(b"4")[4:] + frame(b"5"))
    assert seen == [b"1", b"2", b"3", b"4", b"5"]


def test_limits_on_connections():
    connections = Connections(frame_bytes_max=100, total_max=3, per_address_max=2, call_soon=TURNS.append)
    first, _ = connect(echo, connections=connections)
    connect(echo, connections=connections)
    refused, transport = connect(echo, connections=connections)
    assert transport.closed and connections.refused == 1
    refused.connection_lost(None)
    first.connection_lost(None)
    _, transport = connect(echo, connections=connections)
    assert not transport.closed


def test_idle_connections_are_closed_but_not_those_that_wait_for_an_answer():
    connections = Connections(frame_bytes_max=100, total_max=10, per_address_max=10, call_soon=TURNS.append)
    _, idle = connect(echo, connections=connections)
    waiting, busy = connect(echo, connections=connections)
    waiting.owe(Later())
    active, talking = connect(echo, connections=connections)
    for _ in range(3):
        feed(active, frame(b"x"))
        connections.close_idle(1)
    assert (idle.closed, busy.closed, talking.closed) == (True, False, False)


def depth() -> int:
    """How many calls of Python lie below this one."""
    found, frame = 0, sys._getframe()
    while frame is not None:
        found, frame = found + 1, frame.f_back
    return found


@pytest.mark.parametrize("count", [1, 2, 7])
def test_what_peers_send_does_not_decide_how_deep_calls_go(count):
    """Each frame wakes somebody whose connection has frames left, and costs a turn."""
    connections = Connections(frame_bytes_max=100, total_max=99, per_address_max=99, call_soon=TURNS.append)
    depths, made = [], []

    def serve(connection, buffer, start, end):
        depths.append(depth())
        later = Later()
        connection.owe(later)
        connections.turn_cost = TURN_COST_MAX + 1
        other, _ = made[(len(depths) * 5) % count]

        def answer():
            later.parts = [b"!"]
            connection.settle(later)
            other.settle()

        connections.soon(answer)

    made += [connect(serve, connections=connections) for _ in range(count)]
    for connection, _ in made:
        feed(connection, frame(b"") * 300)
    for _ in range(300 * count):
        next_turn()
    assert len(depths) == 300 * count
    assert [bytes(transport.written) for _, transport in made] == [b"!" * 300] * count
    assert max(depths) - min(depths) < 12
    assert connections.due is None


def test_what_breaks_as_others_are_told_keeps_nobody_else_waiting():
    """The broken connection goes; whoever was put off beside it goes on."""
    connections = Connections(frame_bytes_max=100, total_max=9, per_address_max=9, call_soon=TURNS.append)

    def serve(connection, buffer, start, end):
        connection.reply([b"!"])
        connections.turn_cost = TURN_COST_MAX + 1
        if connection is first[0] and len(first[1].written) == 1:

            def break_off():
                raise RuntimeError("ours")

            connections.soon(break_off)

    first, second = (connect(serve, connections=connections) for _ in range(2))
    for connection, _ in (first, second):
        feed(connection, frame(b"") * 4)
    broken = 0
    for _ in range(20):
        try:
            next_turn()
        except RuntimeError:
            broken += 1
    assert broken == 1
    assert first[1].closed
    assert second[1].written == b"!" * 4
    assert connections.due is None


def test_who_is_closed_and_does_not_read_what_is_left_is_gone_a_tick_later():
    connection, transport = connect(echo)
    transport.buffered = 100  # which the kernel does not take
    connection.close()
    connection.close()
    assert transport.closed
    aborted = []
    transport.abort = lambda: aborted.append(True)
    connections = connection.connections
    connections.close_idle(10)
    assert not aborted, "it has a moment to read it"
    connections.close_idle(10)
    assert aborted


def test_who_is_closed_makes_way_before_anybody_else():
    connection, _ = connect(echo, total_max=2)
    connections = connection.connections
    connections.protected = "BROKERS"
    closed, transport = connect(echo, connections=connections)
    closed.touched += 5
    closed.close()
    aborted = []
    transport.abort = lambda: aborted.append(True)
    broker = KIND[0](connections, "BROKERS", echo)
    broker.connection_made(Transport())
    assert aborted and not connection.closed and not broker.closed
