"""Transactions with real clients: all or nothing, offsets among it, and one producer at a time."""

import asyncio
import time

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.compat.chosen import MakeTopic
from tests.peers.kafka import tool


def writer(bootstrap: str, name: str) -> Producer:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "log_level": 0})
    producer.init_transactions(30)
    return producer


def read(bootstrap: str, topic: str, isolation: str, until: bytes) -> list[bytes]:
    """Everything up to and with one record."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": isolation, "log_level": 0}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    seen: list[bytes] = []
    deadline = time.monotonic() + 20
    while until not in seen:
        assert time.monotonic() < deadline, seen
        message = consumer.poll(0.2)
        if message is not None:
            assert message.error() is None, message.error()
            seen.append(message.value() or b"")
    consumer.close()
    return seen


def test_all_or_nothing(bootstrap: str, topic: str) -> None:
    producer = writer(bootstrap, topic)
    for number in range(6):
        producer.begin_transaction()
        producer.produce(topic, b"%d" % number, partition=0)
        producer.flush(20)
        if number % 2:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    producer.begin_transaction()
    producer.produce(topic, b"end", partition=0)
    producer.commit_transaction(30)
    assert read(bootstrap, topic, "read_committed", b"end") == [b"0", b"2", b"4", b"end"]
    assert read(bootstrap, topic, "read_uncommitted", b"end")[:6] == [b"%d" % number for number in range(6)]


def test_what_is_open_is_not_read_and_holds_back_what_follows(bootstrap: str, topic: str) -> None:
    held, other = writer(bootstrap, topic + "-held"), writer(bootstrap, topic + "-other")
    held.begin_transaction()
    held.produce(topic, b"held", partition=0)
    held.flush(20)
    other.begin_transaction()
    other.produce(topic, b"other", partition=0)
    other.commit_transaction(30)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert consumer.poll(1.5) is None
    held.commit_transaction(30)
    first, second = consumer.poll(20), consumer.poll(20)
    assert first is not None and second is not None
    assert [first.value(), second.value()] == [b"held", b"other"]
    consumer.close()


def test_offsets_go_with_the_records(bootstrap: str, make_topic: MakeTopic) -> None:
    source, target = make_topic(suffix="-in"), make_topic(suffix="-out")
    plain = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(30):
        plain.produce(source, b"%d" % number, partition=0)
    assert plain.flush(20) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"group-of-{source}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.subscribe([source])
    producer = writer(bootstrap, target)
    place = [TopicPartition(source, 0)]
    done = 0
    deadline = time.monotonic() + 40
    while done < 30:
        assert time.monotonic() < deadline, f"only {done} copied"
        messages = [each for each in consumer.consume(10, 1) if each.error() is None]
        if not messages:
            continue
        producer.begin_transaction()
        for message in messages:
            producer.produce(target, message.value(), partition=0)
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata()
        )
        producer.commit_transaction(30)
        done += len(messages)
        assert consumer.committed(place, timeout=20)[0].offset == done
    consumer.close()
    assert read(bootstrap, target, "read_committed", b"29") == [b"%d" % number for number in range(30)]


def test_the_newer_of_two_producers_stays(bootstrap: str, topic: str) -> None:
    old = writer(bootstrap, topic)
    old.begin_transaction()
    old.produce(topic, b"lost", partition=0)
    old.flush(20)
    new = writer(bootstrap, topic)
    with pytest.raises(KafkaException) as caught:
        old.commit_transaction(30)
    assert caught.value.args[0].fatal()
    new.begin_transaction()
    new.produce(topic, b"kept", partition=0)
    new.commit_transaction(30)
    assert read(bootstrap, topic, "read_committed", b"kept") == [b"kept"]


def test_aiokafka(bootstrap: str, topic: str) -> None:
    async def broken(producer: AIOKafkaProducer) -> None:
        async with producer.transaction():
            await producer.send_and_wait(topic, b"two", partition=0)
            raise ZeroDivisionError

    async def write() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic)
        await producer.start()
        try:
            async with producer.transaction():
                await producer.send_and_wait(topic, b"one", partition=0)
            with pytest.raises(ZeroDivisionError):
                await broken(producer)
            async with producer.transaction():
                await producer.send_and_wait(topic, b"three", partition=0)
        finally:
            await producer.stop()

    asyncio.run(asyncio.wait_for(write(), 60))
    assert read(bootstrap, topic, "read_committed", b"three") == [b"one", b"three"]


@pytest.mark.usefixtures("apache_kafka")
def test_the_java_producer_and_kafka_transactions(bootstrap: str, topic: str) -> None:
    place = ["--bootstrap-server", bootstrap]
    tool(
        "ProducerPerformance", *place, "--topic", topic, "--num-records", "200", "--record-size", "50",
        "--throughput", "-1", "--transactional-id", topic, "--transaction-duration-ms", "20",
    )  # fmt: skip
    listed = tool("TransactionsCommand", *place, "list")
    assert any(line.split()[0] == topic and "CompleteCommit" in line for line in listed.splitlines() if line)
    described = tool("TransactionsCommand", *place, "describe", "--transactional-id", topic)
    assert "CompleteCommit" in described
