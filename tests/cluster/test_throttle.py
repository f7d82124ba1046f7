"""Throttled replication: replicas that catch up are slowed down, those in sync and those who write are not."""

import time
from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from tests.peers.cluster import Cluster
from tests.peers.connection import Connection

pytestmark = pytest.mark.long

RATE = 300_000
VALUE = b"x" * 10_000
COUNT = 400  # 4 MB: at this rate 13 s, of which the first megabyte is free
SECONDS_MIN = 5.0


def alter(cluster: Cluster, kind: ResourceType, name: str, configs: dict[str, str | None]) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    entries = [
        ConfigEntry(
            key,
            value or "",
            incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
        )
        for key, value in configs.items()
    ]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(30)


def reassign(cluster: Cluster, topic: str, replicas: list[int]) -> None:
    wish = AlterPartitionReassignmentsRequest.ReassignableTopic
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=30_000,
        topics=[
            wish(name=topic, partitions=[wish.ReassignablePartition(partition_index=0, replicas=replicas)])
        ],
    )
    with Connection(cluster.nodes[1].port) as line:
        answer = line.ask(request, AlterPartitionReassignmentsResponse, 0)
    assert answer.error_code == 0 and answer.responses[0].partitions[0].error_code == 0


def test_a_move_keeps_to_its_rate_and_writers_to_theirs(
    cluster: Cluster, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(partitions=1, replicas=2)
    before = cluster.metadata(1, topic).topics[0].partitions[0].replica_nodes
    new = ({1, 2, 3} - set(before)).pop()
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    for _ in range(COUNT):
        producer.produce(topic, VALUE)
    assert producer.flush(60) == 0
    for side, replicas in (("leader", before), ("follower", [new])):
        named = ",".join(f"0:{id}" for id in replicas)
        alter(cluster, ResourceType.TOPIC, topic, {f"{side}.replication.throttled.replicas": named})
    rates = {f"{side}.replication.throttled.rate": str(RATE) for side in ("leader", "follower")}
    for id in cluster.nodes:
        alter(cluster, ResourceType.BROKER, str(id), dict(rates))
    try:
        began = time.monotonic()
        reassign(cluster, topic, [*before, new])
        # Those in sync go on at full speed meanwhile, though what they get counts.
        waits = []
        for _ in range(10):
            asked = time.monotonic()
            producer.produce(topic, b"y")
            assert producer.flush(30) == 0
            waits.append(time.monotonic() - asked)
        assert sorted(waits)[5] < 1.0, waits
        assert len(cluster.metadata(1, topic).topics[0].partitions[0].isr_nodes) == 2
        cluster.wait_in_sync(topic, 3)
        assert time.monotonic() - began > SECONDS_MIN
    finally:
        for id in cluster.nodes:
            alter(cluster, ResourceType.BROKER, str(id), dict.fromkeys(rates))
