"""Groups of consumers with real clients: both protocols, several members, offsets that outlive them."""

import asyncio
import time

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, ConsumerGroupState, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer

from tests.compat.chosen import MakeTopic
from tests.peers.deadline import eventually
from tests.peers.kafka import tool

RECORDS = 40
PARTITIONS = 4


def fill(bootstrap: str, topic: str, first: int = 0) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(first, first + RECORDS):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(20) == 0


def member(bootstrap: str, group: str, protocol: str, **extra: object) -> Consumer:
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "log_level": 0,
        **extra,
    }
    return Consumer(settings)


def drain(consumers: list[Consumer], count: int) -> list[int]:
    """Read so many records, whoever gets them."""
    seen: list[int] = []
    deadline = time.monotonic() + 30
    while len(seen) < count:
        assert time.monotonic() < deadline, f"only {len(seen)} of {count} came"
        for consumer in consumers:
            for message in consumer.consume(100, 0.05):
                assert message.error() is None, message.error()
                seen.append(int(message.value() or b""))
    return sorted(seen)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_reads_everything_once_and_goes_on_where_it_was(
    bootstrap: str, make_topic: MakeTopic, protocol: str
) -> None:
    topic = make_topic(PARTITIONS)
    group = f"group-of-{topic}"
    fill(bootstrap, topic)
    first = member(bootstrap, group, protocol)
    first.subscribe([topic])
    assert drain([first], RECORDS) == list(range(RECORDS))
    first.commit(asynchronous=False)
    second = member(bootstrap, group, protocol)
    second.subscribe([topic])

    def shared() -> bool:
        for consumer in (first, second):
            message = consumer.poll(0.05)
            assert message is None or message.error() is None
        return len(first.assignment()) == len(second.assignment()) == PARTITIONS // 2

    eventually(shared, 30)
    owned = {(each.topic, each.partition) for each in [*first.assignment(), *second.assignment()]}
    assert len(owned) == PARTITIONS
    fill(bootstrap, topic, RECORDS)
    assert drain([first, second], RECORDS) == list(range(RECORDS, 2 * RECORDS))
    second.close()
    eventually(lambda: first.poll(0.05) is None and len(first.assignment()) == PARTITIONS, 30)
    first.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_are_listed_described_and_deleted(
    bootstrap: str, make_topic: MakeTopic, admin: AdminClient, protocol: str
) -> None:
    topic = make_topic(PARTITIONS)
    group = f"group-of-{topic}"
    fill(bootstrap, topic)
    consumer = member(bootstrap, group, protocol)
    consumer.subscribe([topic])
    drain([consumer], RECORDS)
    consumer.commit(asynchronous=False)
    described = admin.describe_consumer_groups([group])[group].result(20)
    assert described.state is ConsumerGroupState.STABLE
    assert [len(each.assignment.topic_partitions) for each in described.members] == [PARTITIONS]
    places = [TopicPartition(topic, index) for index in range(PARTITIONS)]
    assert {each.offset for each in consumer.committed(places, timeout=20)} == {RECORDS // PARTITIONS}
    consumer.close()
    listed = admin.list_consumer_groups().result(20)
    assert (group, ConsumerGroupState.EMPTY) in [(each.group_id, each.state) for each in listed.valid]
    admin.delete_consumer_groups([group])[group].result(20)
    listed = admin.list_consumer_groups().result(20)
    assert group not in [each.group_id for each in listed.valid]


def test_kafka_python_in_a_group(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(PARTITIONS)
    fill(bootstrap, topic)
    settings = {
        "bootstrap_servers": bootstrap,
        "group_id": f"group-of-{topic}",
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
    }
    consumer = KafkaConsumer(topic, consumer_timeout_ms=20_000, **settings)
    seen = sorted(int(next(consumer).value) for _ in range(RECORDS))
    assert seen == list(range(RECORDS))
    consumer.commit()
    consumer.close()
    fill(bootstrap, topic, RECORDS)
    again = KafkaConsumer(topic, consumer_timeout_ms=20_000, **settings)
    assert min(int(next(again).value) for _ in range(RECORDS)) == RECORDS
    again.close()


def test_aiokafka_in_a_group(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(PARTITIONS)
    fill(bootstrap, topic)

    async def read(first: int) -> None:
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=f"group-of-{topic}",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        try:
            seen = [int((await asyncio.wait_for(consumer.getone(), 20)).value) for _ in range(RECORDS)]
            assert sorted(seen) == list(range(first, first + RECORDS))
            await consumer.commit()
        finally:
            await consumer.stop()

    asyncio.run(read(0))
    fill(bootstrap, topic, RECORDS)
    asyncio.run(read(RECORDS))


@pytest.mark.usefixtures("apache_kafka")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_java_client_and_its_tools(bootstrap: str, make_topic: MakeTopic, protocol: str) -> None:
    topic = make_topic(PARTITIONS)
    group = f"group-of-{topic}"
    fill(bootstrap, topic)
    place = ["--bootstrap-server", bootstrap]
    read = tool(
        "consumer.ConsoleConsumer", *place, "--topic", topic, "--group", group, "--from-beginning",
        "--max-messages", str(RECORDS), "--command-property", f"group.protocol={protocol}",
    )  # fmt: skip
    assert sorted(int(line) for line in read.splitlines() if line.isdigit()) == list(range(RECORDS))

    def groups(*arguments: str) -> str:
        return tool("consumer.group.ConsumerGroupCommand", *place, *arguments)

    def rows() -> list[list[str]]:
        lines = [line.split() for line in groups("--describe", "--group", group).splitlines()]
        return [line for line in lines if line[1:2] == [topic]]

    assert group in groups("--list").split()
    described = rows()
    assert sorted((line[2], line[3], line[5]) for line in described) == [
        (str(index), str(RECORDS // PARTITIONS), "0") for index in range(PARTITIONS)
    ]
    groups("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
    described = rows()
    assert {line[3] for line in described} == {"0"}
    groups("--delete", "--group", group)
    assert group not in groups("--list").split()
