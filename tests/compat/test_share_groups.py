"""Share groups with real clients: Apache Kafka's share consumer and tools, and confluent-kafka's share consumer."""

import time

import confluent_kafka
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.compat.chosen import MakeTopic
from tests.peers.deadline import eventually
from tests.peers.kafka import tool

RECORDS = 40
PARTITIONS = 2


def fill(bootstrap: str, topic: str, first: int = 0) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(first, first + RECORDS):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(20) == 0


def begin_at_the_beginning(bootstrap: str, group: str) -> None:
    """Let a share group read what was there before it."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
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
