"""Share groups with real clients: Apache Kafka's share consumer and tools, and confluent-kafka's share consumer."""

import time

import confluent_kafka
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.compat.chosen import CHOSEN, MakeTopic
from tests.peers.deadline import eventually
from tests.peers.kafka import tool

RECORDS = 40
PARTITIONS = 2


def fill(bootstrap: str, topic: str, first: int = 0) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(first, first + RECORDS):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(20) == 0


def begin_at_the_beginning(bootstrap: str, group: str, **settings: str) -> None:
    """Let a share group read what was there before it; further settings are written with underscores."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    entries = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in {"share_auto_offset_reset": "earliest", **settings}.items()
    ]
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(20)


def consume(bootstrap: str, topic: str, group: str, count: int) -> list[int]:
    """Read so many records with the console consumer of Apache Kafka."""
    printed = tool(
        "consumer.ConsoleShareConsumer",
        "--bootstrap-server", bootstrap, "--topic", topic, "--group", group,
        "--max-messages", str(count), "--timeout-ms", "20000",
    )  # fmt: skip
    return sorted(int(line) for line in printed.splitlines() if line.isdigit())


@pytest.mark.usefixtures("apache_kafka")
def test_the_console_share_consumer_reads_and_goes_on(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(PARTITIONS)
    group = f"share-of-{topic}"
    begin_at_the_beginning(bootstrap, group)
    fill(bootstrap, topic)
    assert consume(bootstrap, topic, group, RECORDS) == list(range(RECORDS))
    fill(bootstrap, topic, RECORDS)
    assert consume(bootstrap, topic, group, RECORDS) == list(range(RECORDS, 2 * RECORDS))


@pytest.mark.usefixtures("apache_kafka")
def test_the_tool_for_share_groups(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(PARTITIONS)
    group = f"share-of-{topic}"
    begin_at_the_beginning(bootstrap, group)
    fill(bootstrap, topic)
    consume(bootstrap, topic, group, RECORDS)

    def command(*arguments: str) -> str:
        return tool(
            "consumer.group.ShareGroupCommand", "--bootstrap-server", bootstrap, "--group", group, *arguments
        )

    assert group in tool("consumer.group.ShareGroupCommand", "--bootstrap-server", bootstrap, "--list")
    eventually(lambda: "Empty" in command("--describe", "--state"), 30)
    lines = [line.split() for line in command("--describe").splitlines() if topic in line]
    assert [(each[1], each[2]) for each in lines] == [(topic, "0"), (topic, "1")]
    command("--reset-offsets", "--to-earliest", "--topic", topic, "--execute")
    assert consume(bootstrap, topic, group, RECORDS) == list(range(RECORDS))
    eventually(lambda: "Empty" in command("--describe", "--state"), 30)
    command("--delete-offsets", "--topic", topic)
    assert "successful" in command("--delete")
    assert group not in tool("consumer.group.ShareGroupCommand", "--bootstrap-server", bootstrap, "--list")


@pytest.mark.skipif(
    not hasattr(confluent_kafka, "ShareConsumer"), reason="this confluent-kafka has no share consumer"
)
def test_confluent_share_consumers_share_one_partition(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(PARTITIONS)
    group = f"share-of-{topic}"
    begin_at_the_beginning(bootstrap, group)
    fill(bootstrap, topic)
    members = [
        confluent_kafka.ShareConsumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})
        for _ in range(2)
    ]
    for member in members:
        member.subscribe([topic])
    seen: list[int] = []
    deadline = time.monotonic() + 30
    while len(seen) < RECORDS:
        assert time.monotonic() < deadline, f"only {len(seen)} of {RECORDS} came"
        for member in members:
            for message in member.poll(timeout=0.5):
                assert message.error() is None, message.error()
                seen.append(int(message.value() or b""))
    for member in members:
        member.close()
    assert sorted(seen) == list(range(RECORDS))


@pytest.mark.skipif(
    not hasattr(confluent_kafka, "ShareConsumer"), reason="this confluent-kafka has no share consumer"
)
def test_a_confluent_share_consumer_gives_records_back(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(PARTITIONS)
    group = f"share-of-{topic}"
    begin_at_the_beginning(bootstrap, group)
    fill(bootstrap, topic)
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "share.acknowledgement.mode": "explicit",
        "log_level": 0,
    }
    kinds = confluent_kafka.AcknowledgeType
    tries: dict[int, int] = {}
    with confluent_kafka.ShareConsumer(settings) as member:
        member.subscribe([topic])
        deadline = time.monotonic() + 30
        while len(tries) < RECORDS or min(tries.values()) < 2:
            assert time.monotonic() < deadline, tries
            for message in member.poll(timeout=0.5):
                assert message.error() is None, message.error()
                number = int(message.value() or b"")
                tries[number] = tries.get(number, 0) + 1
                member.acknowledge(message, kinds.RELEASE if tries[number] == 1 else kinds.ACCEPT)
            member.commit_sync()
    assert tries == dict.fromkeys(range(RECORDS), 2)


@pytest.mark.skipif(
    not hasattr(confluent_kafka, "ShareConsumer"), reason="this confluent-kafka has no share consumer"
)
@pytest.mark.skipif(CHOSEN == "kafka", reason="Apache Kafka 4.3 has no dead-letter topics for share groups")
def test_records_that_are_given_up_reach_the_dead_letter_topic(
    bootstrap: str, admin: AdminClient, make_topic: MakeTopic
) -> None:
    topic = make_topic(PARTITIONS)
    group, letters = f"share-of-{topic}", f"dlq.{topic}"
    allowed = {"errors.deadletterqueue.group.enable": "true"}
    admin.create_topics([NewTopic(letters, PARTITIONS, 1, config=allowed)])[letters].result(20)
    begin_at_the_beginning(
        bootstrap,
        group,
        errors_deadletterqueue_topic_name=letters,
        errors_deadletterqueue_copy_record_enable="true",
        share_delivery_count_limit="2",
    )
    fill(bootstrap, topic)
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "share.acknowledgement.mode": "explicit",
        "log_level": 0,
    }
    kinds = confluent_kafka.AcknowledgeType
    rejected, released = set(range(0, RECORDS, 10)), set(range(5, RECORDS, 10))
    left = dict.fromkeys(range(RECORDS), 1) | dict.fromkeys(released, 2)
    with confluent_kafka.ShareConsumer(settings) as member:
        member.subscribe([topic])
        deadline = time.monotonic() + 30
        while any(left.values()):
            assert time.monotonic() < deadline, left
            for message in member.poll(timeout=0.5):
                assert message.error() is None, message.error()
                number = int(message.value() or b"")
                left[number] -= 1
                kind = kinds.REJECT if number in rejected else kinds.ACCEPT
                member.acknowledge(message, kinds.RELEASE if number in released else kind)
            member.commit_sync()
    found = {}
    with Consumer(
        {"bootstrap.servers": bootstrap, "group.id": letters, "auto.offset.reset": "earliest", "log_level": 0}
    ) as reader:
        reader.subscribe([letters])
        deadline = time.monotonic() + 30
        while len(found) < len(rejected | released):
            assert time.monotonic() < deadline, sorted(found)
            message = reader.poll(0.5)
            if message is not None and message.error() is None:
                found[int(message.value())] = message
    assert found.keys() == rejected | released
    for number, message in found.items():
        assert message.partition() == number % PARTITIONS
        assert dict(message.headers()) == {
            "__dlq.errors.topic": topic.encode(),
            "__dlq.errors.partition": b"%d" % (number % PARTITIONS),
            "__dlq.errors.offset": b"%d" % (number // PARTITIONS),
            "__dlq.errors.group": group.encode(),
            "__dlq.errors.delivery.count": b"1" if number in rejected else b"2",
            "__dlq.errors.message": b"Offset rejected by client."
            if number in rejected
            else b"Offset delivery count exceeded the threshold.",
        }
