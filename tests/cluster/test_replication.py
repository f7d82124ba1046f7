"""Three nodes: what is acknowledged is on all of them, and what one node does another can go on with."""

import json
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from tests.peers.cluster import Cluster
from tests.peers.deadline import eventually

COUNT = 3_000


def read(cluster: Cluster, topic: str, count: int, **settings: object) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": f"of-{topic}",
            "auto.offset.reset": "earliest",
            **settings,
        }
    )
    found: list[bytes] = []
    try:
        consumer.subscribe([topic])

        def more() -> bool:
            for message in consumer.consume(1000, 0.2):
                assert message.error() is None, message.error()
                found.append(message.value() or b"")
            return len(found) >= count

        eventually(more, seconds_max=60)
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return found


def log_bytes(cluster: Cluster, topic: str, partition: int) -> list[bytes]:
    """The segment of a partition at each node."""
    return [
        (node.log_dir / f"{topic}-{partition}" / "00000000000000000000.log").read_bytes()
        for node in cluster.nodes.values()
    ]


def test_replicas_hold_the_same_bytes(cluster: Cluster, make_topic: Callable[..., str]) -> None:
    topic = make_topic()
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "linger.ms": 5})
    failed: list[KafkaError] = []
    for number in range(COUNT):
        # By turns: left to itself, librdkafka may give all to one partition.
        producer.produce(
            topic,
            b"%d" % number,
            partition=number % 3,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
        producer.poll(0)
    assert producer.flush(60) == 0
    assert failed == []
    assert sorted(map(int, read(cluster, topic, COUNT))) == list(range(COUNT))
    for partition in range(3):
        eventually(lambda at=partition: len(set(log_bytes(cluster, topic, at))) == 1)  # type: ignore[misc]
        assert log_bytes(cluster, topic, partition)[0]


def test_any_node_takes_what_only_the_controller_decides(
    cluster: Cluster, make_topic: Callable[..., str]
) -> None:
    for node in cluster.nodes.values():
        topic = make_topic(partitions=1)
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        resource = ConfigResource(ResourceType.TOPIC, topic, set_config={"retention.ms": "12345"})
        admin.alter_configs([resource])[resource].result(30)

        def is_set(admin: AdminClient = admin, topic: str = topic) -> bool:
            asked = ConfigResource(ResourceType.TOPIC, topic)
            return bool(admin.describe_configs([asked])[asked].result(30)["retention.ms"].value == "12345")

        eventually(is_set)
        admin.delete_topics([topic])[topic].result(30)
        for each in cluster.nodes:
            eventually(lambda node=each, name=topic: cluster.metadata(node, name).topics[0].error_code == 3)  # type: ignore[misc]


def test_a_transaction_spans_the_leaders(cluster: Cluster, make_topic: Callable[..., str]) -> None:
    topic = make_topic(partitions=6)
    assert len(set(cluster.leaders(topic).values())) == 3
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": topic})
    producer.init_transactions(60)
    for number in range(6):
        producer.begin_transaction()
        for partition in range(6):
            producer.produce(topic, b"%d" % number, partition=partition)
        if number % 2:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
    seen = read(cluster, topic, 18, **{"isolation.level": "read_committed"})
    assert sorted(map(int, seen)) == [0] * 6 + [2] * 6 + [4] * 6


def test_offsets_of_a_transaction_count_with_it(cluster: Cluster, make_topic: Callable[..., str]) -> None:
    source, target = make_topic(partitions=1), make_topic(partitions=2)
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": source, "isolation.level": "read_committed"}
    )
    try:
        consumer.subscribe([source])
        eventually(lambda: consumer.poll(0.2) is None and len(consumer.assignment()) == 1, seconds_max=60)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": f"copy-{source}"})
        producer.init_transactions(60)
        for offset, ends in ((5, producer.commit_transaction), (9, producer.abort_transaction)):
            producer.begin_transaction()
            producer.produce(target, b"x")
            producer.send_offsets_to_transaction(
                [TopicPartition(source, 0, offset)], consumer.consumer_group_metadata(), 60
            )
            ends(60)
        eventually(lambda: consumer.committed([TopicPartition(source, 0)], 30)[0].offset == 5)
    finally:
        consumer.close()


def test_too_few_in_sync_are_refused(cluster: Cluster, make_topic: Callable[..., str]) -> None:
    topic = make_topic(partitions=1, replicas=2, min_insync_replicas="3")
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "message.timeout.ms": 20_000})
    reports: list[KafkaError | None] = []
    producer.produce(topic, b"x", on_delivery=lambda error, _: reports.append(error))
    producer.flush(30)
    assert reports == [None]  # more than there are replicas cannot be asked for


def test_a_topic_needs_brokers_for_its_replicas(cluster: Cluster, make_topic: Callable[..., str]) -> None:
    with pytest.raises(KafkaException, match="INVALID_REPLICATION_FACTOR"):
        make_topic(replicas=4)


def test_the_quorum_describes_all_voters(cluster: Cluster) -> None:
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "ottla.cli.main", "cluster", "info", "-b", cluster.bootstrap, "-o", "json"],
        check=True,
        capture_output=True,
        timeout=60,
    )
    told = json.dumps(json.loads(done.stdout))
    for id in cluster.nodes:
        assert f'"id": {id}' in told or f'"node": {id}' in told, told
