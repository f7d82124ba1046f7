"""Tasks that several wait for, alone and where connections are made."""

import asyncio

import pytest

from ottla.client.connections import ClientConnections, Node
from ottla.client.errors import Closed, Disconnected
from ottla.client.shared_task import start_shared, wait_shared
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.world.entropy import SeededEntropy
from tests.unit.client.brokers import SETTINGS, SILENCE, Brokers


def ended():
    return Disconnected("ended")


def test_one_who_gives_up_does_not_end_it_for_the_others():
    async def play():
        door = asyncio.Event()

        async def work():
            await door.wait()
            return 5

        task = start_shared(work())
        impatient, patient = (asyncio.create_task(wait_shared(task, ended)) for _ in range(2))
        await asyncio.sleep(0)
        impatient.cancel()
        await asyncio.sleep(0)
        assert impatient.cancelled() and not task.done()
        door.set()
        assert await patient == 5

    asyncio.run(play())


def test_those_who_wait_for_what_is_ended_get_an_error():
    async def play():
        task = start_shared(asyncio.sleep(60))
        waiting = asyncio.create_task(wait_shared(task, ended))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(Disconnected, match="ended"):
            await waiting

    asyncio.run(play())


def test_an_error_that_nobody_waits_for_is_nobodys_business():
    complaints = []

    async def play():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

        async def work():
            raise Disconnected("x")

        start_shared(work())
        await asyncio.sleep(0.01)

    asyncio.run(play())
    assert not complaints


def play_on_links(test):
    async def play():
        brokers = Brokers()
        brokers.handlers["Heartbeat"] = lambda _: HeartbeatResponse()
        connections = ClientConnections(SETTINGS, brokers, SeededEntropy(1))
        connections.learn([Node(1, "one", 9092)])
        await test(brokers, connections)
        connections.close()
        await asyncio.sleep(0.01)

    asyncio.run(play())


async def asked(brokers):
    """Wait until the first request has come."""
    async with asyncio.timeout(5):
        while True:
            if brokers.asked:
                return
            await asyncio.sleep(0)


def beat(connections):
    return asyncio.create_task(connections.ask(1, HeartbeatRequest(group_id="g"), HeartbeatResponse))


def test_nothing_is_asked_before_versions_are_agreed_on():
    async def test(brokers, connections):
        ask_versions = brokers.answer
        brokers.answer = lambda *question: SILENCE
        first = beat(connections)
        await asked(brokers)
        # The connection is there, and ApiVersions has not been answered.
        brokers.answer = ask_versions
        assert not connections.is_connected(1)
        second = beat(connections)
        await asyncio.sleep(0.01)
        assert not second.done()
        for outcome in await asyncio.gather(first, second, return_exceptions=True):
            assert not isinstance(outcome, HeartbeatResponse)
        assert brokers.names() == []

    play_on_links(test)


def test_closing_while_connecting_is_an_error_for_those_who_wait():
    async def test(brokers, connections):
        brokers.answer = lambda *question: SILENCE
        waiting = beat(connections)
        await asked(brokers)
        connections.close()
        with pytest.raises(Closed):
            await waiting

    play_on_links(test)


def test_a_broker_that_leaves_while_connecting_is_an_error_too():
    async def test(brokers, connections):
        brokers.answer = lambda *question: SILENCE
        waiting = beat(connections)
        await asked(brokers)
        connections.learn([])
        with pytest.raises(Disconnected, match="not part of the cluster any more"):
            await waiting

    play_on_links(test)
