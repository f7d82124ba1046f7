"""How much of what peers ask for is served in a turn, in which order, and what a peer may hold meanwhile."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import ottla
from ottla.broker import lane as lane_module
from ottla.channel import connection as connection_module
from ottla.channel import connections as connections_module
from ottla.channel import swift
from ottla.channel.connections import DUE_A_TURN, HELD_BYTES_MAX, TURN_COST_MAX, Connections
from ottla.channel.ready import Ready
from ottla.channel.turns import LIGHT, Turns
from ottla.wire import record_walk
from tests.unit.channel.test_connection import (
    TURNS,
    Later,
    connect,
    feed,
    frame,
    kind,
    next_turn,
)

__all__ = ["kind"]  # every test is one of the class in Python and of its compiled twin
MIB = 1 << 20


@pytest.fixture(autouse=True)
def no_turns():
    TURNS.clear()


def all_of(bytes_max=256 * MIB, **more):
    return Connections(
        frame_bytes_max=1000,
        total_max=1000,
        per_address_max=1000,
        call_soon=TURNS.append,
        answer_bytes_max=bytes_max,
        **more,
    )


def held_back(connection):
    """Have a transport take nothing."""
    connection.pause_writing()


def test_a_turn_ends_after_a_megabyte_of_answers():
    served = []

    def serve(connection, buffer, start, end):
        served.append(bytes(buffer[start:end]))
        connection.reply([bytes(TURN_COST_MAX // 2)])

    connection, transport = connect(serve)
    feed(connection, b"".join(frame(b"%d" % number) for number in range(7)))
    assert len(served) == 3 and not transport.reading
    next_turn()
    assert len(served) == 6
    next_turn()
    assert len(served) == 7 and transport.reading
    assert served == [b"%d" % number for number in range(7)]


def test_answers_that_are_not_taken_are_counted_and_end_the_serving():
    connections, served = all_of(), []

    def serve(connection, buffer, start, end):
        served.append(1)
        connection.reply([bytes(MIB)])

    connection, transport = connect(serve, connections=connections)
    held_back(connection)
    feed(connection, frame(b"?") * 40)
    for _ in range(100):
        next_turn()
    assert len(served) <= 3
    assert connection.held == connections.answers.total == len(served) * MIB
    while len(served) < 40:
        connection.resume_writing()
        next_turn()
    assert connections.answers.total == 0 and len(transport.written) == 40 * MIB


def test_answers_behind_one_that_is_not_ready_are_counted():
    connections, first = all_of(), Later()

    def serve(connection, buffer, start, end):
        if bytes(buffer[start:end]) == b"first":
            connection.owe(first)
        else:
            connection.reply([bytes(MIB)])

    connection, transport = connect(serve, connections=connections)
    feed(connection, frame(b"first") + frame(b"?") * 40)
    for _ in range(100):
        next_turn()
    assert connection.held == connections.answers.total <= 3 * MIB
    assert not transport.reading
    first.parts = [b"ready"]
    connection.settle(first)
    while TURNS:
        next_turn()
    assert connections.answers.total == connection.held == 0
    assert len(transport.written) == 5 + 40 * MIB


def test_a_peer_that_goes_leaves_nothing_behind():
    connections = all_of()
    connection, _ = connect(lambda c, *_: c.reply([bytes(2 * MIB)]), connections=connections)
    held_back(connection)
    feed(connection, frame(b"?"))
    assert connections.answers.total == 2 * MIB
    connection.connection_lost(None)
    assert connections.answers.total == connections.answers.holders == 0


def test_what_each_may_hold_falls_with_the_number_of_holders():
    connections = all_of(64 * MIB)
    total = []
    for _ in range(200):
        connection, _ = connect(
            lambda c, *_: c.reply([bytes(connections.answer_bytes_max(c))]), connections=connections
        )
        held_back(connection)
        feed(connection, frame(b"?") * 40)
        total.append(connections.answers.total)
    for _ in range(300):
        next_turn()
    assert connections.answers.total < 64 * MIB
    assert connections.answer_bytes_max(connect(lambda *_: None, connections=connections)[0]) > 0


def test_who_waits_for_room_goes_on_when_others_are_gone():
    connections, told = all_of(MIB), []
    full, _ = connect(lambda c, *_: c.reply([bytes(2 * MIB)]), connections=connections)
    held_back(full)
    feed(full, frame(b"?"))
    assert connections.answers.is_full

    def serve(connection, buffer, start, end):
        name = bytes(buffer[start:end])
        connection.wait_for_room(lambda: told.append(name))

    waiting, transport = connect(serve, connections=connections)
    feed(waiting, frame(b"1") + frame(b"2"))
    next_turn()
    assert told == [] and not transport.reading
    full.resume_writing()
    while TURNS:
        next_turn()
    assert told == [b"1", b"2"] and transport.reading


def test_who_asks_for_little_is_served_before_the_rest_of_those_who_ask_for_much():
    connections, served = all_of(), []

    def heavy(connection, buffer, start, end):
        served.append("heavy")
        connection.reply([bytes(TURN_COST_MAX + 1)])

    def light(connection, buffer, start, end):
        served.append("light")
        connection.reply([b"."])

    few, _ = connect(light, connections=connections)
    feed(few, frame(b"?"))
    many = [connect(heavy, connections=connections)[0] for _ in range(20)]
    served.clear()
    for each in many:
        feed(each, frame(b"?") * 3)
    first = served.count("heavy")
    assert first < 10  # the loop has had enough
    feed(few, frame(b"?"))
    assert "light" not in served
    next_turn()
    assert served[first] == "light"
    while TURNS:
        before = len(served)
        next_turn()
        assert len(served) - before <= 3  # a megabyte a turn, whoever has it
    assert served.count("heavy") == 60


def test_a_request_that_cannot_be_whole_for_want_of_room_waits():
    connections = Connections(
        frame_bytes_max=MIB, total_max=10, per_address_max=10, call_soon=TURNS.append, request_bytes_max=MIB
    )
    served = []
    peers = [connect(lambda c, b, start, end: served.append(end - start), connections=connections) for _ in range(8)]
    whole = frame(bytes(900_000))
    for connection, _ in peers:
        feed(connection, whole[:200_000])
    # Whatever one read brings is held in any case.
    assert connections.requests.total < MIB + 8 * (256 << 10)
    assert sum(not transport.reading for _, transport in peers) > 3
    sent = dict.fromkeys(range(8), 200_000)
    for _ in range(1000):
        for number, (connection, transport) in enumerate(peers):
            if transport.reading and sent[number] < len(whole):
                feed(connection, whole[sent[number] : sent[number] + 100_000])
                sent[number] += 100_000
            assert connections.requests.total < MIB + 8 * (256 << 10)
        while TURNS:
            next_turn()
    assert served == [900_000] * 8 and connections.requests.total == 0


def test_where_very_many_wait_for_one_read_the_loop_goes_on_between():
    connections, told = all_of(), []

    def serve(connection, buffer, start, end):
        for number in range(2 * DUE_A_TURN + 1):
            connections.soon(lambda number=number: told.append(number))
        connection.reply([b"."])

    connection, transport = connect(serve, connections=connections)
    feed(connection, frame(b"?"))
    assert told == list(range(DUE_A_TURN)) and transport.written == b"."
    next_turn()
    assert len(told) == 2 * DUE_A_TURN
    next_turn()
    assert told == list(range(2 * DUE_A_TURN + 1)) and not TURNS


def test_so_it_does_where_they_wait_for_the_disk():
    connections, told = all_of(), []
    for number in range(2 * DUE_A_TURN):
        connections.soon(lambda number=number: told.append(number))
    next_turn()
    assert told == list(range(DUE_A_TURN))
    next_turn()
    assert told == list(range(2 * DUE_A_TURN)) and not TURNS


def test_a_turn_gives_those_who_waited_eight_megabytes_and_the_turns_after_it_one_each():
    connections, told = all_of(), []
    waiting = [connect(lambda *_: None, connections=connections)[0] for _ in range(40)]

    def give(number):
        told.append(number)
        waiting[number].reply([bytes(MIB // 2)])

    def serve(connection, buffer, start, end):
        for number in range(len(waiting)):
            connections.soon(lambda number=number: give(number))
        connection.reply([b"."])

    connection, transport = connect(serve, connections=connections)
    feed(connection, frame(b"?"))
    assert told == list(range(17)) and transport.written == b".", "more than eight megabytes, then the producer hears"
    next_turn()
    assert told == list(range(20)), "more than one"
    connections.soon(lambda: told.append("later"))
    next_turn()
    assert told == list(range(23))
    while TURNS:
        next_turn()
    assert told == [*range(40), "later"]


def test_what_stands_behind_another_answer_costs_as_much_as_what_leaves():
    connections = all_of()
    waiting = [connect(lambda *_: None, connections=connections)[0] for _ in range(8)]
    answers = []
    for each in waiting:
        first, second = Ready(None), Ready(None)
        each.owe(first)
        each.owe(second)
        answers.append(second)

    def give(number):
        answers[number].parts = [bytes(MIB // 2)]
        waiting[number].settle(answers[number])

    for number in range(8):
        connections.soon(lambda number=number: give(number))
    next_turn()
    assert sum(each.parts is not None for each in answers) == 3


def test_no_frame_is_served_while_those_who_waited_are_answered():
    """An answer lets a connection go on with what stands behind: in a turn of its own, and so does what that brings."""
    connections, served = all_of(), []

    def serve(connection, buffer, start, end):
        served.append(bytes(buffer[start:end]))
        if served[-1] == b"waits":
            connection.mute()

    waiting = [connect(serve, connections=connections)[0] for _ in range(3)]
    for each in waiting:
        feed(each, frame(b"waits") + frame(b"behind"))
        connections.soon(each.unmute)
    connections.soon(lambda: connections.soon(lambda: served.append(b"later")))
    assert served == [b"waits"] * 3
    TURNS.pop(0)()
    assert served == [b"waits"] * 3, "not within the turn that has answered them"
    while TURNS:
        next_turn()
    assert sorted(served[3:]) == [b"behind"] * 3 + [b"later"]


def test_one_that_breaks_among_those_who_waited_does_not_keep_the_others():
    connections, told = all_of(), []
    connections.soon(lambda: told.append(1))
    connections.soon(lambda: 1 // 0)
    connections.soon(lambda: told.append(3))
    with pytest.raises(ZeroDivisionError):
        next_turn()
    next_turn()
    assert told == [1, 3] and not TURNS


# How many


def listen(connections, listener, count=1):
    made = []
    for _ in range(count):
        connection, transport = connect(lambda *_: None, connections=all_of())
        connection.connection_lost(None)
        connection.connections, connection.listener, connection.closed = connections, listener, False
        connection.connection_made(transport)
        made.append((connection, transport))
    return made


def test_a_listener_has_a_limit_of_its_own():
    connections = all_of()
    connections.per_listener_max = {"A": 2}
    listen(connections, "A", 3)
    listen(connections, "B", 3)
    assert connections.by_listener == {"A": 2, "B": 3} and connections.refused == 1


def test_other_brokers_come_in_above_the_limit_and_the_most_silent_client_goes():
    connections = all_of()
    connections.total_max, connections.protected = 4, "BROKERS"
    clients = listen(connections, "CLIENTS", 4)
    for connection, _ in clients:
        connection.touched = 5
    clients[2][0].touched = 1
    assert listen(connections, "CLIENTS")[0][1].closed  # refused
    [(broker, transport)] = listen(connections, "BROKERS")
    assert not transport.closed and broker in connections.open
    assert [transport.closed for _, transport in clients] == [False, False, True, False]
    clients[2][0].connection_lost(None)
    assert len(connections.open) == 4
    connections.per_listener_max = {"BROKERS": 1}
    assert listen(connections, "BROKERS")[0][1].closed


# Numbers of both languages


def test_the_compiled_parts_are_told_their_numbers():
    if not swift.IS_HERE:
        pytest.skip("the compiled parts were not built")
    from ottla.broker import _lane
    from ottla.channel import _frames

    known = {
        **{cls.__name__: cls for cls in swift.CLASSES},
        **swift.NUMBERS,
    }
    served = []
    try:
        _frames.learn(known | {"FRAMES_A_TURN": 3})
        connection = swift.SwiftConnection(all_of(), "A", lambda *_: served.append(1))
        connection.connection_made(connect(lambda *_: None)[1])
        feed(connection, frame(b"?") * 5)
        assert len(served) == 3
    finally:
        _frames.learn(known)
    for learn, classes, numbers in (
        (_frames.learn, swift.CLASSES, swift.NUMBERS),
        (_lane.learn, lane_module.CLASSES, lane_module.NUMBERS),
    ):
        for name in numbers:
            short = {cls.__name__: cls for cls in classes} | {each: n for each, n in numbers.items() if each != name}
            with pytest.raises(TypeError, match=name):
                learn(short)
        learn({cls.__name__: cls for cls in classes} | numbers)


def test_no_number_that_python_has_is_written_again_in_c():
    root = Path(ottla.__file__).parent
    sources = [*root.glob("*/_*.c"), *root.glob("*/_*.h")]
    assert len(sources) > 5
    found = re.findall(r"^#define (\w+) +([^/\n]*\d[^/\n]*)", "\n".join(map(Path.read_text, sources)), re.M)
    defined = {name: value.strip() for name, value in found}
    told = {**swift.NUMBERS, **lane_module.NUMBERS}
    assert not told.keys() & defined.keys()
    assert {connection_module.FRAMES_A_TURN, connections_module.TURN_COST_MAX} <= set(told.values())
    # An array is as long as this, so that it cannot be told at run time.
    assert int(defined["BAD_RECORDS_MAX"]) == record_walk.BAD_RECORDS_MAX


def test_what_a_connection_may_hold_is_no_less_than_a_turn_brings():
    assert HELD_BYTES_MAX >= TURN_COST_MAX


# What takes long


def dear(connections, served, name, seconds=0.03):
    """Serve what takes long and has a small answer."""

    def serve(connection, buffer, start, end):
        served.append(name)
        connections.spend(seconds)
        connection.reply([b"."])

    return connect(serve, connections=connections)[0]


def test_a_frame_that_takes_long_ends_a_turn_however_small_its_answer():
    connections, served = all_of(), []
    connection = dear(connections, served, "dear")
    feed(connection, frame(b"?") * 64)
    for number in range(1, 65):
        assert len(served) == number
        next_turn()
    assert len(served) == 64 and not connections._turns


def test_frames_that_are_quick_end_it_by_their_number_alone():
    connections, served = all_of(), []
    connection = dear(connections, served, "quick", 50e-6)
    feed(connection, frame(b"?") * 65)
    assert len(served) == 64
    next_turn()
    assert len(served) == 65 and connection.spent == 0


def test_who_asks_for_what_takes_long_waits_behind_those_who_do_not():
    connections, served = all_of(), []
    light = [dear(connections, served, "light", 0) for _ in range(3)]
    for each in light:
        feed(each, frame(b"?"))
    many = [dear(connections, served, number) for number in range(5)]
    for each in many:
        feed(each, frame(b"?") * 20)
    while len(served) < 40:
        served.clear()
        next_turn()
        assert len(served) == 1  # a turn has one of them
        for each in light:
            feed(each, frame(b"?"))
        assert served[1:] in ([], ["light"] * 3)
        connections.spend_outside(many[0], 1)  # the loop has had enough
        for each in light:
            feed(each, frame(b"?"))
        next_turn()
        assert served[-4:-1] == ["light"] * 3 and served[-1] != "light"
        if not connections._turns:
            break


def test_among_those_who_ask_for_what_takes_long_turns_are_shared_by_cost():
    connections, served = all_of(), []
    cheap = dear(connections, served, "cheap", 0.01)
    costly = dear(connections, served, "costly", 0.04)
    feed(cheap, frame(b"?") * 60)
    feed(costly, frame(b"?") * 60)
    while len(served) < 50:
        next_turn()
    assert 8 <= served.count("costly") <= 12


def test_who_alternates_is_not_taken_for_one_who_asks_for_little():
    turns = Turns()
    busy, honest, *sly = [SimpleNamespace(rank=LIGHT, spent=0) for _ in range(12)]
    turns.add(busy)
    for each in sly:
        turns.charge(each, 1000)  # and its rank is that of what came after it, which has cost nothing
    for each in (*sly, honest):
        turns.add(each)
    turns.begin()
    assert [turns.pop() for _ in range(13)] == [busy, honest, *sly, None]
    turns.add(sly[0])
    turns.add(honest)
    turns.begin()
    assert turns.pop() is sly[0], "all have waited as long, and what was spent before counts no more"


def test_what_was_spent_while_nobody_waited_counts_no_more():
    connections, served = all_of(), []
    reader = dear(connections, served, "reader", 0.004)
    for _ in range(100):
        feed(reader, frame(b"?"))
    while TURNS:
        next_turn()
    served.clear()
    busy = dear(connections, served, "busy")
    feed(busy, frame(b"?") * 30)
    connections.spend_outside(busy, 1)
    feed(reader, frame(b"?"))
    next_turn()
    next_turn()
    assert "reader" in served


def test_who_waited_for_room_goes_on_later_where_the_loop_has_had_enough():
    connections, told = all_of(MIB), []
    full, _ = connect(lambda c, *_: c.reply([bytes(2 * MIB)]), connections=connections)
    held_back(full)
    feed(full, frame(b"?"))

    def serve(connection, buffer, start, end):
        def handle():
            told.append(1)
            connections.spend_outside(connection, 0.03)

        connection.wait_for_room(handle)

    for _ in range(16):
        feed(connect(serve, connections=connections)[0], frame(b"1"))
    full.resume_writing()
    most = 0
    while TURNS:
        before = len(told)
        next_turn()
        most = max(most, len(told) - before)
    assert len(told) == 16 and most <= 4
