"""Consumers when brokers die and lines fail: nothing is lost or out of order, and everything ends."""

import asyncio
import time
from typing import NamedTuple

import pytest

from ottla.client import Admin, Consumer, ShareConsumer, TopicPartition
from ottla.client.admin.configs import Resource
from ottla.client.errors import ClientError, TimedOut
from tests.client.bad_line import BadLine
from tests.client.conftest import BOTH, SETTINGS, create_topic
from tests.client.writing import write
from tests.compat.absence import need_kafka
from tests.compat.chosen import SERVERS
from tests.faults.seeds import seeded
from tests.peers.server import HOST, Server, free_ports

# Try again soon, and give up soon: the tests are not to wait.
EAGER = {
    "auto.offset.reset": "earliest",
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "request.timeout.ms": 1_000,
}
PROTOCOLS = {
    "classic": {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 300, "max.poll.interval.ms": 6_000},
    "consumer": {"group.protocol": "consumer"},
}
RECORDS = 40


class Rig(NamedTuple):
    """A server of our own, and the line to it."""

    server: Server
    line: BadLine

    @property
    def bootstrap(self):
        return f"{HOST}:{self.line.port}"

    @property
    def straight(self):
        """Past the line."""
        return self.server.bootstrap


@pytest.fixture(scope="module", params=BOTH)
def running(request, tmp_path_factory):
    if request.param == "kafka":
        need_kafka()
    (port,) = free_ports(1)
    advertised = {"advertised.listeners": f"PLAINTEXT://{HOST}:{port}"}
    server = SERVERS[request.param](tmp_path_factory.mktemp("mortal"), SETTINGS | advertised)
    with server, BadLine(port, server.port) as line:
        yield Rig(server, line)


@pytest.fixture
def rig(running):
    if running.server.process is None:
        running.server.start()
    yield running
    running.line.heal()


@pytest.fixture(params=PROTOCOLS)
def protocol(request):
    return {**EAGER, **PROTOCOLS[request.param]}


async def read(consumer, count, seconds_max=60):
    found = []
    async with asyncio.timeout(seconds_max):
        while len(found) < count:
            found += await consumer.poll(timeout=0.5)
    return found


def fill(rig, topic, word, count=RECORDS):
    for number in (0, 1):
        write(
            rig.bootstrap,
            topic,
            [b"%s %d %d" % (word, number, n) for n in range(count)],
            number,
            batch_size=600,
        )


def per_partition(records):
    return [[record.value for record in records if record.partition == number] for number in (0, 1)]


def expected(*words, count=RECORDS):
    return [[b"%s %d %d" % (word, number, n) for word in words for n in range(count)] for number in (0, 1)]


# Brokers


def test_killed_and_started_again(rig, topic_name, run):
    topic = create_topic(rig.bootstrap, topic_name, 2)

    async def main():
        async with Consumer(rig.bootstrap, EAGER, max_poll_records=7) as consumer:
            consumer.assign([(topic, 0), (topic, 1)])
            await asyncio.to_thread(fill, rig, topic, b"one")
            # Half of it is read when the server goes, some of it was fetched already.
            found = await read(consumer, RECORDS)
            await asyncio.to_thread(rig.server.kill)
            found += await consumer.poll(timeout=0.2)
            await asyncio.to_thread(rig.server.start)
            await asyncio.to_thread(fill, rig, topic, b"two")
            found += await read(consumer, 4 * RECORDS - len(found))
            assert await consumer.poll(timeout=0.1) == []
            assert per_partition(found) == expected(b"one", b"two")

    run(main())


def test_a_group_outlives_its_broker(rig, topic_name, run, protocol):
    if rig.server.name == "kafka":
        pytest.skip("one restart of Apache Kafka is enough")
    topic = create_topic(rig.bootstrap, topic_name, 2)

    async def main():
        async with Consumer(rig.bootstrap, protocol, group_id=topic_name, max_poll_records=9) as consumer:
            await consumer.subscribe([topic])
            await asyncio.to_thread(fill, rig, topic, b"one")
            found = await read(consumer, 2 * RECORDS)
            await consumer.commit()
            await asyncio.to_thread(rig.server.kill)
            assert await consumer.poll(timeout=0.3) == []
            with pytest.raises(TimedOut):
                await consumer.commit({TopicPartition(topic, 0): 1}, timeout=0.3)
            await asyncio.to_thread(rig.server.start)
            await asyncio.to_thread(fill, rig, topic, b"two")
            found += await read(consumer, 2 * RECORDS)
            assert per_partition(found) == expected(b"one", b"two")
            await consumer.commit()
        async with Consumer(rig.bootstrap, protocol, group_id=topic_name) as consumer:
            place = TopicPartition(topic, 0)
            assert (await consumer.committed([place]))[place].offset == 2 * RECORDS

    run(main())


def test_a_share_group_outlives_its_broker(rig, topic_name, run):
    if rig.server.name == "kafka":
        pytest.skip("one restart of Apache Kafka is enough")
    topic = create_topic(rig.bootstrap, topic_name, 2)

    async def main():
        await from_the_beginning(rig, topic_name)
        async with ShareConsumer(rig.bootstrap, share_settings(), group_id=topic_name) as consumer:
            await consumer.subscribe([topic])
            await asyncio.to_thread(fill, rig, topic, b"one")
            found = await read(consumer, 2 * RECORDS)
            assert all(error is None for error in (await consumer.commit()).values())
            await asyncio.to_thread(rig.server.stop)
            assert await consumer.poll(timeout=0.3) == []
            await asyncio.to_thread(rig.server.start)
            await asyncio.to_thread(fill, rig, topic, b"two")
            found += await read(consumer, 2 * RECORDS)
            assert per_partition(found) == expected(b"one", b"two")

    run(main())


# Lines


def test_a_line_that_is_cut_again_and_again(rig, topic_name, run):
    chance = seeded(__file__)
    topic = create_topic(rig.bootstrap, topic_name, 2)
    fill(rig, topic, b"x" * 50, 1_500)
    rig.line.cut_often(chance, 15_000)

    async def main():
        settings = {**EAGER, "max.partition.fetch.bytes": 5_000, "max.poll.records": 100}
        async with Consumer(rig.bootstrap, settings) as consumer:
            consumer.assign([(topic, 0), (topic, 1)])
            found = await read(consumer, 3_000)
        rig.line.heal()
        return found

    before = rig.line.cuts
    assert per_partition(run(main())) == expected(b"x" * 50, count=1_500)
    assert rig.line.cuts > before + 5


def test_a_group_on_a_line_that_is_cut_again_and_again(rig, topic_name, run, protocol):
    chance = seeded(__file__)
    topic = create_topic(rig.bootstrap, topic_name, 2)
    fill(rig, topic, b"x" * 50, 1_000)

    async def main():
        settings = {
            **protocol,
            "max.partition.fetch.bytes": 5_000,
            "max.poll.records": 50,
            "auto.commit.interval.ms": 50,
        }
        async with Consumer(rig.bootstrap, settings, group_id=topic_name) as consumer:
            await consumer.subscribe([topic])
            rig.line.cut_often(chance, 15_000)
            wanted = {value for part in expected(b"x" * 50, count=1_000) for value in part}
            found, seen = [], set()
            async with asyncio.timeout(60):
                while seen != wanted:
                    records = await consumer.poll(timeout=0.5)
                    found += records
                    seen |= {record.value for record in records}
            rig.line.heal()
            await consumer.commit()
        # It may have lost its seat and begun again where it had committed, but it has never skipped anything.
        for number in (0, 1):
            offsets = [record.offset for record in found if record.partition == number]
            reached = -1
            for offset in offsets:
                assert offset <= reached + 1
                reached = max(reached, offset)

    run(main(), seconds_max=80)


def test_a_line_that_falls_silent(rig, topic_name, run, protocol):
    topic = create_topic(rig.bootstrap, topic_name, 2)

    async def main():
        async with Consumer(rig.bootstrap, protocol, group_id=topic_name) as consumer:
            await consumer.subscribe([topic])
            await asyncio.to_thread(fill, rig, topic, b"one")
            found = await read(consumer, 2 * RECORDS)
            rig.line.hold()
            began = time.monotonic()
            assert await consumer.poll(timeout=1.5) == []
            with pytest.raises(TimedOut):
                await consumer.commit(timeout=0.3)
            assert time.monotonic() - began < 4
            rig.line.heal()
            await asyncio.to_thread(fill, rig, topic, b"two")
            found += await read(consumer, 2 * RECORDS)
            assert per_partition(found) == expected(b"one", b"two")
            await consumer.commit()

    run(main())


def test_closing_when_nobody_answers(rig, topic_name, run, protocol):
    topic = create_topic(rig.bootstrap, topic_name, 2)

    async def main():
        consumer = Consumer(rig.bootstrap, protocol, group_id=topic_name)
        share = ShareConsumer(rig.bootstrap, share_settings(), group_id=topic_name + "-share")
        await consumer.open()
        await share.open()
        await consumer.subscribe([topic])
        await share.subscribe([topic])
        await asyncio.to_thread(fill, rig, topic, b"x")
        await read(consumer, 2 * RECORDS)
        await share.poll(timeout=0.3)
        rig.line.hold()
        began = time.monotonic()
        await asyncio.gather(consumer.close(timeout=0.5), share.close(timeout=0.5))
        assert time.monotonic() - began < 4

    run(main())


def share_settings(**more):
    return {name: value for name, value in EAGER.items() if name != "auto.offset.reset"} | more


async def from_the_beginning(rig, group):
    async with Admin(rig.straight) as admin:
        await admin.configs.alter({Resource.group(group): {"share.auto.offset.reset": "earliest"}})


def test_a_share_group_on_a_line_that_is_cut_again_and_again(rig, topic_name, run):
    chance = seeded(__file__)
    topic = create_topic(rig.bootstrap, topic_name, 2)
    fill(rig, topic, b"x" * 50, 300)

    async def main():
        await from_the_beginning(rig, topic_name)
        settings = share_settings(**{"share.acquire.mode": "record_limit", "max.poll.records": 20})
        async with ShareConsumer(rig.bootstrap, settings, group_id=topic_name) as consumer:
            await consumer.subscribe([topic])
            rig.line.cut_often(chance, 10_000)
            wanted = {value for part in expected(b"x" * 50, count=300) for value in part}
            seen = set()
            async with asyncio.timeout(60):
                while seen != wanted:
                    try:
                        seen |= {record.value for record in await consumer.poll(timeout=0.5)}
                    except ClientError as error:
                        assert error.retriable, error
            rig.line.heal()
            await consumer.commit()

    run(main(), seconds_max=80)
