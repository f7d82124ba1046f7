"""Consumers in groups, by both protocols: sharing, changing hands, committing, and groups with others' members."""

import asyncio
import re
import subprocess
import time

import pytest
from confluent_kafka import Consumer as RdConsumer
from confluent_kafka import TopicPartition as Place

from ottla.client import Consumer, OffsetAndMetadata, Producer, RebalanceListener, TopicPartition
from ottla.client.errors import ClientError, CommitFailed, Fenced, Refused
from tests.client.readback import values as read_back
from tests.client.writing import write
from tests.compat.absence import need_kafka
from tests.peers import jars
from tests.peers.kafka import SHORT_LIVED

EARLIEST = {"auto.offset.reset": "earliest"}
# As short as brokers allow by their defaults.
CLASSIC = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 300}
PROTOCOLS = {
    "range": {"partition.assignment.strategy": "range", **CLASSIC},
    "sticky": {"partition.assignment.strategy": "sticky", **CLASSIC},
    "cooperative": {"partition.assignment.strategy": "cooperative-sticky", **CLASSIC},
    "consumer": {"group.protocol": "consumer"},
}


@pytest.fixture(params=PROTOCOLS)
def protocol(request):
    return {**EARLIEST, **PROTOCOLS[request.param]}


class Diary(RebalanceListener):
    """Writes down what it is told."""

    def __init__(self):
        self.entries = []

    def on_partitions_assigned(self, partitions):
        self.entries.append(("assigned", {each.partition for each in partitions}))

    def on_partitions_revoked(self, partitions):
        self.entries.append(("revoked", {each.partition for each in partitions}))

    def on_partitions_lost(self, partitions):
        self.entries.append(("lost", {each.partition for each in partitions}))


class Reader:
    """Reads in a task of its own, until it is stopped."""

    def __init__(self, consumer):
        self.consumer = consumer
        self.found = []
        self.task = asyncio.create_task(self._read())

    async def _read(self):
        while True:
            self.found += await self.consumer.poll(timeout=0.2)

    async def stop(self):
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    def values(self):
        return [record.value for record in self.found]


async def until(condition, seconds_max=25):
    deadline = time.monotonic() + seconds_max
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        await asyncio.sleep(0.02)


def owns(count):
    return lambda reader: len(reader.consumer.assignment) == count


async def shared(*readers, count=2):
    """Wait until each reader has so many partitions."""

    def so():
        for reader in readers:
            if reader.task.done():
                reader.task.result()
        return all(map(owns(count), readers))

    await until(so)


# Sharing


def test_two_members_share_and_one_takes_over(bootstrap, make_topic, topic_name, run, protocol):
    name = make_topic(4)

    def fill(word):
        for number in range(4):
            write(bootstrap, name, [b"%s %d %d" % (word, number, n) for n in range(50)], number)

    async def main():
        diary = Diary()
        async with Consumer(bootstrap, protocol, group_id=topic_name) as one:
            await one.subscribe([name], listener=diary)
            first = Reader(one)
            await shared(first, count=4)
            fill(b"alone")
            await until(lambda: len(first.found) == 200)
            async with Consumer(bootstrap, protocol, group_id=topic_name) as two:
                await two.subscribe([name])
                second = Reader(two)
                await shared(first, second)
                assert not one.assignment & two.assignment
                fill(b"shared")
                await until(lambda: len(first.found) + len(second.found) >= 400)
                assert len(second.found) == 100
                await second.stop()
            # What it had read is committed with its leave, so nothing comes twice.
            await shared(first, count=4)
            fill(b"again")
            await until(lambda: len(first.found) >= 500)
            await first.stop()
            everything = sorted(first.values() + second.values())
            assert everything == sorted(
                b"%s %d %d" % (word, number, n)
                for word in (b"alone", b"shared", b"again")
                for number in range(4)
                for n in range(50)
            )
            # A coordinator that has just heard of the topic may assign nothing of it at first.
            given = [entry for entry in diary.entries if entry[0] == "assigned" and entry[1]]
            assert given[0] == ("assigned", {0, 1, 2, 3})
            assert any(what == "revoked" for what, _ in diary.entries)
        assert diary.entries[-1] == ("revoked", {0, 1, 2, 3})

    run(main())


def test_offsets_are_committed_for_others_to_see(bootstrap, topic, topic_name, run, protocol):
    write(bootstrap, topic, [b"%d" % n for n in range(20)])
    place = TopicPartition(topic, 0)

    async def main():
        async with Consumer(bootstrap, protocol, group_id=topic_name, enable_auto_commit=False) as consumer:
            await consumer.subscribe([topic])
            assert await consumer.committed([place]) == {place: None}
            count = 0
            async for _ in consumer:
                count += 1
                if count == 7:
                    break
            await consumer.commit()
            assert (await consumer.committed([place]))[place].offset == 7
            heard = asyncio.get_running_loop().create_future()
            consumer.commit_nowait(
                {place: OffsetAndMetadata(9, "a note", 0)},
                lambda offsets, error: heard.set_result((offsets, error)),
            )
            assert await heard == ({place: OffsetAndMetadata(9, "a note", 0)}, None)
            assert (await consumer.committed([place]))[place] == OffsetAndMetadata(9, "a note", 0)
            with pytest.raises(Refused, match="OFFSET_METADATA_TOO_LARGE"):
                await consumer.commit({place: OffsetAndMetadata(9, "x" * 5_000)})

    run(main())
    other = RdConsumer({"bootstrap.servers": bootstrap, "group.id": topic_name, "log_level": 0})
    assert other.committed([Place(topic, 0)], timeout=20)[0].offset == 9
    other.close()

    async def again():
        async with Consumer(bootstrap, protocol, group_id=topic_name) as consumer:
            await consumer.subscribe([topic])
            async for record in consumer:
                assert record.offset == 9
                break

    run(again())


@pytest.mark.parametrize("protocol", [PROTOCOLS["range"], PROTOCOLS["consumer"]], ids=["classic", "consumer"])
def test_auto_commit_in_time(bootstrap, topic, topic_name, run, protocol):
    write(bootstrap, topic, [b"%d" % n for n in range(20)])
    place = TopicPartition(topic, 0)

    async def main():
        settings = {**EARLIEST, **protocol, "auto.commit.interval.ms": 100, "max.poll.records": 5}
        async with Consumer(bootstrap, settings, group_id=topic_name) as consumer:
            await consumer.subscribe([topic])
            found = []
            while len(found) < 10:
                found += await consumer.poll(timeout=1.0)
            await asyncio.sleep(0.15)
            consumer.pause([place])
            await consumer.poll(timeout=0.3)
            assert (await consumer.committed([place]))[place].offset == 10

    run(main())


# Ways to subscribe


@pytest.mark.parametrize("kind", ["classic", "consumer", "consumer-here"])
def test_patterns(bootstrap, make_topic, topic_name, run, kind):
    one, two = make_topic(1, "-one"), make_topic(1, "-two")
    make_topic(1, "-other")
    text = re.escape(topic_name).replace("\\-", "-") + "-(one|two|three)"
    settings = PROTOCOLS["range" if kind == "classic" else "consumer"]

    async def main():
        async with Consumer(
            bootstrap, {**EARLIEST, **settings}, group_id=topic_name, metadata_max_age_ms=200
        ) as consumer:
            await consumer.subscribe(pattern=re.compile(text) if kind == "consumer-here" else text)
            reader = Reader(consumer)
            await until(lambda: {each.topic for each in consumer.assignment} == {one, two})
            for name in (one, two):
                await asyncio.to_thread(write, bootstrap, name, [name.encode()])
            await until(lambda: sorted(reader.values()) == sorted([one.encode(), two.encode()]))
            if kind != "consumer":
                three = await asyncio.to_thread(make_topic, 1, "-three")
                await until(lambda: {each.topic for each in consumer.assignment} == {one, two, three})
            await reader.stop()

    run(main())


def test_changing_the_subscription(bootstrap, make_topic, topic_name, run, protocol):
    one, two = make_topic(2, "-one"), make_topic(2, "-two")

    async def main():
        async with Consumer(bootstrap, protocol, group_id=topic_name) as consumer:
            await consumer.subscribe([one])
            reader = Reader(consumer)
            await until(lambda: {each.topic for each in consumer.assignment} == {one})
            await reader.stop()
            await consumer.subscribe([two])
            reader = Reader(consumer)
            await until(lambda: {each.topic for each in consumer.assignment} == {two})
            await reader.stop()
            await consumer.unsubscribe()
            assert consumer.assignment == frozenset()
            consumer.assign([(one, 0)])
            await consumer.poll(timeout=0.05)

    run(main())


# Identity


@pytest.mark.parametrize("protocol", [PROTOCOLS["range"], PROTOCOLS["consumer"]], ids=["classic", "consumer"])
def test_a_static_member_comes_back_to_its_partitions(bootstrap, make_topic, topic_name, run, protocol):
    name = make_topic(4)

    async def main():
        settings = {**EARLIEST, **protocol}
        diary = Diary()
        async with Consumer(bootstrap, settings, group_id=topic_name, group_instance_id="one") as one:
            await one.subscribe([name], listener=diary)
            first = Reader(one)
            async with Consumer(bootstrap, settings, group_id=topic_name, group_instance_id="two") as two:
                await two.subscribe([name])
                second = Reader(two)
                await shared(first, second)
                await asyncio.sleep(0.5)
                had = two.assignment
                await second.stop()
            entries = list(diary.entries)
            async with Consumer(bootstrap, settings, group_id=topic_name, group_instance_id="two") as two:
                await two.subscribe([name])
                second = Reader(two)
                await until(lambda: two.assignment == had)
                await second.stop()
            assert diary.entries == entries, "nobody else noticed"
            await first.stop()

    run(main())


def test_a_second_member_of_the_same_name_fences_the_first(bootstrap, topic, topic_name, run):
    async def main():
        settings = {**EARLIEST, **PROTOCOLS["range"]}
        async with Consumer(bootstrap, settings, group_id=topic_name, group_instance_id="i") as one:
            await one.subscribe([topic])
            first = Reader(one)
            await shared(first, count=1)
            async with Consumer(bootstrap, settings, group_id=topic_name, group_instance_id="i") as two:
                await two.subscribe([topic])
                second = Reader(two)
                await until(first.task.done)
                with pytest.raises(Fenced):
                    await first.task
                await shared(second, count=1)
                await second.stop()

    run(main())


@pytest.mark.parametrize(
    "protocol", [PROTOCOLS["cooperative"], PROTOCOLS["consumer"]], ids=["classic", "consumer"]
)
def test_who_does_not_poll_loses_its_partitions(bootstrap, make_topic, topic_name, run, protocol):
    name = make_topic(2)
    protocol = {**EARLIEST, **protocol}

    async def main():
        diary = Diary()
        settings = {**protocol, "max.poll.interval.ms": 1_500}
        async with Consumer(bootstrap, settings, group_id=topic_name) as one:
            await one.subscribe([name], listener=diary)
            slow = Reader(one)
            await shared(slow)
            await slow.stop()
            async with Consumer(bootstrap, protocol, group_id=topic_name) as two:
                await two.subscribe([name])
                quick = Reader(two)
                await shared(quick, count=2)
                with pytest.raises(CommitFailed):
                    await one.commit({TopicPartition(name, 0): 0})
                slow = Reader(one)
                await shared(slow, quick, count=1)
                assert ("lost", {0, 1}) in diary.entries
                await slow.stop()
                await quick.stop()

    run(main(), seconds_max=60)


def test_an_unknown_assignor_of_the_broker_is_refused(bootstrap, topic, topic_name, run):
    async def main():
        settings = {**EARLIEST, "group.protocol": "consumer", "group.remote.assignor": "nonesuch"}
        async with Consumer(bootstrap, settings, group_id=topic_name) as consumer:
            await consumer.subscribe([topic])
            with pytest.raises(Refused, match="UNSUPPORTED_ASSIGNOR"):
                await consumer.poll(timeout=10.0)

    run(main())


def test_a_bad_pattern_is_refused(bootstrap, topic_name, run):
    async def main():
        settings = {**EARLIEST, "group.protocol": "consumer"}
        async with Consumer(bootstrap, settings, group_id=topic_name) as consumer:
            await consumer.subscribe(pattern="(unclosed")
            with pytest.raises(Refused, match="INVALID_REGULAR_EXPRESSION"):
                await consumer.poll(timeout=10.0)

    run(main())


# Exactly once


@pytest.mark.parametrize("protocol", [PROTOCOLS["range"], PROTOCOLS["consumer"]], ids=["classic", "consumer"])
def test_offsets_in_a_transaction(bootstrap, make_topic, topic_name, run, protocol):
    source, target = make_topic(1, "-source"), make_topic(1, "-target")
    write(bootstrap, source, [b"%d" % n for n in range(100)])

    async def copy(consumer, producer, count, *, commit):
        copied = 0
        while copied < count:
            records = await consumer.poll(timeout=2.0, max_records=count - copied)
            if not records:
                continue
            producer.begin_transaction()
            for record in records:
                await producer.send(target, record.value)
            place = TopicPartition(source, 0)
            offsets = {place: OffsetAndMetadata(records[-1].offset + 1)}
            await producer.send_offsets_to_transaction(offsets, consumer.group_metadata)
            await (producer.commit_transaction() if commit else producer.abort_transaction())
            copied += len(records)

    async def main():
        settings = {**EARLIEST, **protocol, "enable.auto.commit": False, "isolation.level": "read_committed"}
        async with Producer(bootstrap, transactional_id=topic_name) as producer:
            await producer.init_transactions()
            async with Consumer(bootstrap, settings, group_id=topic_name) as consumer:
                await consumer.subscribe([source])
                await copy(consumer, producer, 60, commit=True)
                await copy(consumer, producer, 20, commit=False)
            async with Consumer(bootstrap, settings, group_id=topic_name) as consumer:
                await consumer.subscribe([source])
                await copy(consumer, producer, 40, commit=True)

    run(main(), seconds_max=60)
    assert read_back(bootstrap, target, committed=True) == [b"%d" % n for n in range(100)]


# Together with others


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_a_group_with_librdkafka(bootstrap, make_topic, topic_name, run, strategy, first):
    name = make_topic(4)
    for number in range(4):
        write(bootstrap, name, [b"%d %d" % (number, n) for n in range(25)], number)
    theirs = RdConsumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": topic_name,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": strategy,
            "session.timeout.ms": 6_000,
            "heartbeat.interval.ms": 300,
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )

    async def follow(stop):
        while not stop.is_set():
            await asyncio.to_thread(theirs.poll, 0.1)

    async def main():
        stop = asyncio.Event()
        settings = {
            **EARLIEST,
            **CLASSIC,
            "partition.assignment.strategy": strategy,
            "enable.auto.commit": False,
        }
        async with Consumer(bootstrap, settings, group_id=topic_name) as ours:
            following = None
            if first == "theirs":
                theirs.subscribe([name])
                following = asyncio.create_task(follow(stop))
                await until(lambda: len(theirs.assignment()) == 4)
            await ours.subscribe([name])
            reader = Reader(ours)
            if first == "ours":
                await shared(reader, count=4)
                theirs.subscribe([name])
                following = asyncio.create_task(follow(stop))
            await until(lambda: len(theirs.assignment()) == 2 and len(ours.assignment) == 2)
            assert {each.partition for each in ours.assignment} | {
                each.partition for each in theirs.assignment()
            } == {0, 1, 2, 3}
            stop.set()
            await following
            await asyncio.to_thread(theirs.close)
            await shared(reader, count=4)
            await until(lambda: {b"%d 24" % number for number in range(4)} <= set(reader.values()))
            await reader.stop()

    run(main(), seconds_max=60)


@pytest.mark.parametrize("strategy", ["range", "sticky", "cooperative-sticky"])
def test_a_group_with_java(bootstrap, make_topic, topic_name, run, strategy, server):
    """Java's consumer joins ours, and goes again; whoever leads, both have their share."""
    need_kafka()
    if server.name == "kafka" and strategy != "sticky":
        pytest.skip("it is the members that matter, and they met on Ottla")
    name = make_topic(4)
    java = {"range": "Range", "sticky": "Sticky", "cooperative-sticky": "CooperativeSticky"}[strategy]
    command = [
        jars.java(), *SHORT_LIVED, "-cp", jars.classpath(), "org.apache.kafka.tools.consumer.ConsoleConsumer",
        "--bootstrap-server", bootstrap, "--topic", name, "--group", topic_name,
        "--command-property", f"partition.assignment.strategy=org.apache.kafka.clients.consumer.{java}Assignor",
        "--command-property", "session.timeout.ms=6000",
        "--command-property", "heartbeat.interval.ms=300",
    ]  # fmt: skip

    async def main():
        settings = {**EARLIEST, **CLASSIC, "partition.assignment.strategy": strategy}
        async with Consumer(bootstrap, settings, group_id=topic_name) as ours:
            await ours.subscribe([name])
            reader = Reader(ours)
            await shared(reader, count=4)
            process = await asyncio.to_thread(
                subprocess.Popen, command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            try:
                await shared(reader, count=2)
                mine = {each.partition for each in ours.assignment}
                await asyncio.sleep(1)
                for number in range(4):
                    await asyncio.to_thread(write, bootstrap, name, [b"to %d" % number], number)
                await until(lambda: set(reader.values()) == {b"to %d" % number for number in mine})
                # The leader is whoever the coordinator names; make it the other one for a round.
                ours.enforce_rebalance("for the test")
                await asyncio.sleep(0.5)
                await shared(reader, count=2)
            finally:
                process.terminate()
                printed, _ = await asyncio.to_thread(process.communicate, timeout=20)
            theirs = set(printed.split(b"\n")) - {b""}
            assert theirs == {b"to %d" % number for number in range(4) if number not in mine}
            await shared(reader, count=4)
            await reader.stop()

    run(main(), seconds_max=80)


def test_a_group_that_moves_from_one_protocol_to_the_other(bootstrap, make_topic, topic_name, run):
    name = make_topic(4)

    async def main():
        async with Consumer(bootstrap, {**EARLIEST, **PROTOCOLS["cooperative"]}, group_id=topic_name) as old:
            await old.subscribe([name])
            first = Reader(old)
            await shared(first, count=4)
            async with Consumer(bootstrap, {**EARLIEST, **PROTOCOLS["consumer"]}, group_id=topic_name) as new:
                await new.subscribe([name])
                second = Reader(new)
                await shared(first, second)
                await first.stop()
                await old.close()
                await shared(second, count=4)
                await second.stop()

    run(main(), seconds_max=60)


def test_closing_is_quick_and_leaves_the_group(bootstrap, topic, topic_name, run, protocol):
    async def main():
        for _ in range(3):
            began = time.monotonic()
            async with Consumer(bootstrap, protocol, group_id=topic_name) as consumer:
                await consumer.subscribe([topic])
                reader = Reader(consumer)
                await shared(reader, count=1)
                await reader.stop()
            # Were it still a member, the next one would have to wait for its session to end.
            assert time.monotonic() - began < 5

    run(main())


def test_errors_of_the_client_are_one_family():
    assert issubclass(CommitFailed, ClientError)
    assert issubclass(Fenced, ClientError)
