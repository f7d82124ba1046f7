"""Share groups on three nodes: their state is on another broker than the records, and outlives either."""

import asyncio
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.client import AcknowledgeType, Admin, ShareConsumer, TopicPartition
from ottla.client.admin import NewTopic
from ottla.client.admin.configs import Resource
from ottla.client.admin.offsets import OffsetSpec
from ottla.client.record import Record
from ottla.share.key import ShareKey, state_partition
from ottla.wire.uuid import uuid_bytes
from tests.client.command_line import CommandLine
from tests.cluster.conftest import create_topic
from tests.peers.cluster import Cluster, running
from tests.peers.deadline import eventually

STATE = "__share_group_state"
STATE_PARTITIONS = 6
COUNT = 300
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": str(STATE_PARTITIONS),
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "group.share.assignment.interval.ms": "0",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "100",
    "errors.deadletterqueue.auto.create.topics.enable": "true",
}
_serial = itertools.count(1)


@pytest.fixture(scope="module")
def sharing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("share"), SETTINGS) as cluster:
        yield cluster


class Scene:
    """A topic of one partition, and a share group whose state another broker keeps."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.topic = create_topic(cluster, 1)
        self.group = asyncio.run(self._begin())
        self.write(0, COUNT)

    async def _begin(self) -> str:
        async with Admin(self.cluster.bootstrap) as admin:
            # The state's own topic comes with its first use.
            await self._use(admin, "first")
            described = await admin.topics.describe([self.topic, STATE])
            leads = {each.partition: each.leader for each in described[STATE].partitions}
            self.topic_id = uuid_bytes(described[self.topic].id)
            for number in _serial:
                name = f"group-{number}"
                if leads[self.keeper(name)] != self.leader:
                    break
            await self._use(admin, name)
        return name

    async def _use(self, admin: Admin, group: str) -> None:
        await admin.configs.alter({Resource.group(group): {"share.auto.offset.reset": "earliest"}})
        async with ShareConsumer(self.cluster.bootstrap, group_id=group) as consumer:
            await consumer.subscribe([self.topic])
            async with asyncio.timeout(60):
                while STATE not in await admin.topics.list(internal=True):
                    await consumer.poll(timeout=0.2)

    def keeper(self, group: str) -> int:
        """The partition that keeps the state."""
        return state_partition(ShareKey(group, self.topic_id, 0), STATE_PARTITIONS)

    @property
    def leader(self) -> int:
        return self.cluster.leaders(self.topic)[0]

    @property
    def coordinator(self) -> int:
        """Who keeps the state."""
        return self.cluster.leaders(STATE)[self.keeper(self.group)]

    def write(self, first: int, count: int) -> None:
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap, "acks": "all"})
        for number in range(first, first + count):
            producer.produce(self.topic, b"%d" % number)
        assert producer.flush(60) == 0

    def consumer(self, **settings: object) -> ShareConsumer:
        return ShareConsumer(
            self.cluster.bootstrap,
            {"share.acknowledgement.mode": "explicit", "max.poll.records": 20, **settings},
            group_id=self.group,
        )


async def take(
    consumer: ShareConsumer, count: int, kind: AcknowledgeType = AcknowledgeType.ACCEPT
) -> set[int]:
    """Poll and acknowledge until so many were taken note of for good."""
    settled: set[int] = set()
    async with asyncio.timeout(90):
        while len(settled) < count:
            records: list[Record] = await consumer.poll(timeout=0.5)
            for record in records:
                consumer.acknowledge(record, kind)
            if records:
                outcome = await consumer.commit(timeout=30)
                if all(error is None for error in outcome.values()):
                    settled |= {int(record.value) for record in records}
    return settled


def test_the_state_is_kept_elsewhere_and_told(sharing: Cluster, tmp_path: Path) -> None:
    scene = Scene(sharing)
    assert scene.coordinator != scene.leader

    async def main() -> set[int]:
        async with scene.consumer() as consumer:
            await consumer.subscribe([scene.topic])
            return await take(consumer, COUNT)

    assert asyncio.run(main()) == set(range(COUNT))

    async def lag() -> int | None:
        async with Admin(sharing.bootstrap) as admin:
            found = await admin.share_offsets.describe(scene.group)
            return found[scene.group][TopicPartition(scene.topic, 0)].lag

    # Whoever coordinates the group asks the partition's leader how far that is.
    eventually(lambda: asyncio.run(lag()) == 0)
    for node in sharing.nodes.values():
        ottla = CommandLine(node.bootstrap, tmp_path)
        (told,) = ottla("group", "describe", scene.group, "-o", "json").json
        (place,) = [each for each in told["offsets"] if each["topic"] == scene.topic]
        assert place["lag"] == 0, json.dumps(told)


@pytest.mark.parametrize("victim", ["coordinator", "leader"])
def test_what_was_acknowledged_is_not_delivered_again(sharing: Cluster, victim: str) -> None:
    scene = Scene(sharing)
    assert scene.coordinator != scene.leader
    doomed = scene.coordinator if victim == "coordinator" else scene.leader

    async def main() -> tuple[set[int], set[int]]:
        async with scene.consumer() as consumer:
            await consumer.subscribe([scene.topic])
            before = await take(consumer, COUNT // 2)
            await asyncio.to_thread(sharing.nodes[doomed].kill)
            after = await take(consumer, COUNT - len(before))
            return before, after

    try:
        before, after = asyncio.run(main())
    finally:
        sharing.nodes[doomed].kill()
        sharing.nodes[doomed].start()
        sharing.wait_whole()
        sharing.wait_in_sync(scene.topic, 3)
        sharing.wait_in_sync(STATE, 3)
    assert before & after == set(), "what was acknowledged came again"
    assert before | after == set(range(COUNT))


def test_dead_letters_go_to_the_leader_of_their_topic(sharing: Cluster) -> None:
    scene = Scene(sharing)
    dead = f"dlq.{scene.topic}"

    async def main() -> None:
        async with Admin(sharing.bootstrap) as admin:
            elsewhere = next(id for id in sharing.nodes if id != scene.leader)
            others = [id for id in sharing.nodes if id != elsewhere]
            configs = {"errors.deadletterqueue.group.enable": "true"}
            await admin.topics.create(NewTopic(dead, assignment={0: [elsewhere, *others]}, configs=configs))
            await admin.configs.alter(
                {Resource.group(scene.group): {"errors.deadletterqueue.topic.name": dead}}
            )
        async with scene.consumer() as consumer:
            await consumer.subscribe([scene.topic])
            await take(consumer, 40, AcknowledgeType.REJECT)

    asyncio.run(main())

    async def end() -> int:
        place = TopicPartition(dead, 0)
        async with Admin(sharing.bootstrap) as admin:
            return (await admin.offsets.list({place: OffsetSpec.LATEST}))[place].offset

    eventually(lambda: asyncio.run(end()) >= 40, seconds_max=30)
