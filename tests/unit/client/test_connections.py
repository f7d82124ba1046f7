"""Connections by broker: made once, agreed on, left in peace when asked, and made again after a pause."""

import asyncio
import re

import pytest

from ottla.client.connections import ClientConnections, Node
from ottla.client.errors import Closed, Disconnected, Malformed, TimedOut, Unsupported
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.world.entropy import SeededEntropy
from tests.unit.client.brokers import SETTINGS, SILENCE, Brokers


def run(test, **settings):
    """Play a test on fresh links to node 1 at one:9092; no task may be left."""

    async def play():
        brokers = Brokers()
        brokers.handlers["Heartbeat"] = lambda _: HeartbeatResponse()
        connections = ClientConnections({**SETTINGS, **settings}, brokers, SeededEntropy(1))
        connections.learn([Node(1, "one", 9092)])
        await test(brokers, connections)
        connections.close()
        await asyncio.sleep(0.01)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert not brokers.open

    asyncio.run(play())


def beat(connections, node=1, **options):
    return connections.ask(node, HeartbeatRequest(group_id="g"), HeartbeatResponse, **options)


def test_many_questions_at_once_make_one_connection():
    async def test(brokers, connections):
        await asyncio.gather(*(beat(connections) for _ in range(10)))
        assert brokers.connects == 1
        assert brokers.asked[0][1] == "ApiVersions"

    run(test)


def test_the_highest_version_both_know_is_spoken():
    async def test(brokers, connections):
        brokers.limits["one:9092"] = {"Heartbeat": 2}
        await beat(connections)
        assert brokers.asked[-1][2] == 2
        await beat(connections, newest=1)
        assert brokers.asked[-1][2] == 1

    run(test)


def test_what_a_broker_does_not_serve_is_not_sent():
    async def test(brokers, connections):
        brokers.limits["one:9092"] = {"Heartbeat": -1}
        with pytest.raises(Unsupported, match="Heartbeat not at all"):
            await beat(connections)
        assert brokers.names() == []

    run(test)


def test_a_version_that_cannot_express_the_request_is_refused_before_it_is_sent():
    async def test(brokers, connections):
        brokers.limits["one:9092"] = {"JoinGroup": 2}
        request = JoinGroupRequest(group_id="g", group_instance_id="static")
        with pytest.raises(Unsupported):
            await connections.ask(1, request, JoinGroupResponse)

    run(test)


def test_a_lost_connection_ends_the_question_and_is_made_again_for_the_next():
    async def test(brokers, connections):
        asked = asyncio.Event()
        brokers.handlers["Heartbeat"] = lambda _: asked.set() or SILENCE
        question = asyncio.create_task(beat(connections))
        await asked.wait()
        brokers.hang_up()
        with pytest.raises(Disconnected):
            await question
        brokers.handlers["Heartbeat"] = lambda _: HeartbeatResponse()
        await beat(connections)
        assert brokers.connects == 2

    run(test)


def test_silence_ends_the_connection_after_the_request_timeout():
    async def test(brokers, connections):
        brokers.handlers["Heartbeat"] = lambda _: SILENCE
        with pytest.raises(TimedOut, match="Heartbeat within 0.01 s"):
            await beat(connections, timeout_ms=10)
        await asyncio.sleep(0)
        assert not connections.is_connected(1)

    run(test)


def test_who_refuses_to_connect_is_asked_again_only_after_a_pause():
    async def test(brokers, connections):
        brokers.down.add("one:9092")
        loop = asyncio.get_running_loop()
        began = loop.time()
        for _ in range(3):
            with pytest.raises(Disconnected, match="one:9092: Connection refused"):
                await beat(connections)
        assert loop.time() - began >= 0.08
        assert brokers.connects == 3

    run(test, **{"reconnect.backoff.ms": 40, "reconnect.backoff.max.ms": 100})


def test_a_broker_that_asks_for_patience_is_left_in_peace():
    async def test(brokers, connections):
        brokers.handlers["Heartbeat"] = lambda _: HeartbeatResponse(throttle_time_ms=30)
        loop = asyncio.get_running_loop()
        await beat(connections)
        assert not connections.is_connected(1)
        began = loop.time()
        await beat(connections)
        assert loop.time() - began >= 0.025

    run(test)


def test_a_broker_that_moves_is_asked_at_its_new_place():
    async def test(brokers, connections):
        await beat(connections)
        connections.learn([Node(1, "elsewhere", 9092)])
        await beat(connections)
        assert brokers.asked[-1][0] == "elsewhere:9092"

    run(test)


def test_nonsense_is_told_as_such():
    async def test(brokers, connections):
        class Nonsense:
            def encode(self, version):
                return b""

        brokers.handlers["Heartbeat"] = lambda _: Nonsense()
        with pytest.raises(Malformed):
            await beat(connections)

    run(test)


def test_a_cancelled_question_does_not_spoil_the_connection():
    async def test(brokers, connections):
        first = asyncio.create_task(beat(connections))
        await asyncio.sleep(0)
        first.cancel()
        await beat(connections)
        assert brokers.connects == 1

    run(test)


def test_nothing_is_asked_after_the_end():
    async def test(brokers, connections):
        connections.close()
        with pytest.raises(Closed):
            await beat(connections)

    run(test)


def test_idle_connections_are_closed():
    async def test(brokers, connections):
        clock = connections._now
        await beat(connections)
        connections._now = lambda: clock() + 50
        connections.close_idle()
        assert connections.is_connected(1)
        connections._now = lambda: clock() + 61
        connections.close_idle()
        await asyncio.sleep(0)
        assert not connections.is_connected(1)

    run(test, **{"connections.max.idle.ms": 60_000})


def test_who_does_not_accept_is_given_more_time_each_time():
    async def test(brokers, connections):
        brokers.deaf.add("one:9092")
        given = []
        for _ in range(3):
            with pytest.raises(Disconnected) as refused:
                await beat(connections)
            given.append(float(re.search(r"did not accept within ([\d.]+) s", str(refused.value))[1]))
        assert given[0] < 0.02 < given[1] < 0.04 < given[2]  # as told, whatever else the machine does

    run(test, **{"socket.connection.setup.timeout.ms": 12, "socket.connection.setup.timeout.max.ms": 1_000})


def test_the_sizes_of_buffers_are_those_of_the_settings():
    async def test(brokers, connections):
        await beat(connections)
        assert brokers.buffers == (131_072, -1)

    run(test)
