"""Racks: a consumer reads from the replica next to it, and finds there what is committed (KIP-392)."""

import asyncio
import itertools
import urllib.request
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import Producer, TopicPartition

from ottla.client import Consumer
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from tests.cluster.conftest import create_topic
from tests.peers.cluster import Cluster
from tests.peers.connection import Connection
from tests.peers.deadline import eventually
from tests.peers.server import HOST, free_ports

pytestmark = pytest.mark.long

SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
COUNT = 2_000
_groups = itertools.count(1)


class Racks(Cluster):
    """Node n stands in rack `r<n>`, and tells what it does."""

    def __init__(self, *arguments: object, **how: object) -> None:
        super().__init__(*arguments, **how)  # type: ignore[arg-type]
        self.pages = dict(zip(self.nodes, free_ports(len(self.nodes)), strict=True))
        for id, node in self.nodes.items():
            node.settings |= {
                "broker.rack": f"r{id}",
                "replica.selector.class": SELECTOR,
                "ottla.metrics.listener": f"{HOST}:{self.pages[id]}",
            }

    def fetches(self, id: int, topic: str) -> float:
        """How many bytes of a topic a node has sent to consumers."""
        with urllib.request.urlopen(f"http://{HOST}:{self.pages[id]}/metrics", timeout=10) as page:
            lines = page.read().decode().splitlines()
        found = [line for line in lines if "bytesout_total" in line and f'"{topic}"' in line]
        return sum(float(line.rsplit(" ", 1)[1]) for line in found)


@pytest.fixture(scope="module")
def racks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Racks]:
    cluster = Racks(tmp_path_factory.mktemp("racks"))
    try:
        cluster.start()
        yield cluster
    finally:
        for node in cluster.nodes.values():
            node.kill()


@pytest.fixture(scope="module")
def topic(racks: Racks) -> str:
    name = create_topic(racks, 1)
    write(racks, name, COUNT)
    return name


def write(racks: Racks, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": racks.bootstrap, "acks": "all", "linger.ms": 5})
    for number in range(count):
        producer.produce(topic, b"%d" % number)
    assert producer.flush(30) == 0


def fetch(racks: Racks, node: int, topic: str, offset: int, rack: str, version: int = 12) -> FetchResponse:
    wanted = FetchRequest.FetchTopic
    request = FetchRequest(
        max_wait_ms=200,
        min_bytes=1,
        rack_id=rack,
        session_epoch=-1,
        topics=[
            wanted(
                topic=topic,
                partitions=[
                    wanted.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
                ],
            )
        ],
    )
    with Connection(racks.nodes[node].port) as line:
        return line.ask(request, FetchResponse, version)


def part_of(answer: FetchResponse) -> FetchResponse.FetchableTopicResponse.PartitionData:
    return answer.responses[0].partitions[0]


def test_the_leader_names_the_replica_in_the_rack(racks: Racks, topic: str) -> None:
    leader = racks.leaders(topic)[0]
    for id in racks.nodes:
        part = part_of(fetch(racks, leader, topic, 0, f"r{id}"))
        assert part.error_code == 0
        assert part.preferred_read_replica == (-1 if id == leader else id)
        assert bool(part.records) == (id == leader)
        assert part.high_watermark == COUNT
    for rack in ("", "elsewhere"):
        part = part_of(fetch(racks, leader, topic, 0, rack))
        assert part.preferred_read_replica == -1 and part.records


def test_a_follower_serves_what_is_committed(racks: Racks, topic: str) -> None:
    leader = racks.leaders(topic)[0]
    for id in racks.nodes.keys() - {leader}:
        eventually(
            lambda at=id: part_of(fetch(racks, at, topic, 0, f"r{at}")).high_watermark == COUNT  # type: ignore[misc]
        )
        part = part_of(fetch(racks, id, topic, COUNT - 10, f"r{id}"))
        assert part.error_code == 0 and part.records and part.preferred_read_replica == -1
        assert part_of(fetch(racks, id, topic, COUNT, f"r{id}")).error_code == 0
        assert part_of(fetch(racks, id, topic, COUNT + 1, f"r{id}")).error_code == 1  # out of range
        # Who cannot say where it is reads from the leader alone.
        assert part_of(fetch(racks, id, topic, 0, "", version=10)).error_code == 6


def test_confluents_consumer_reads_next_door(racks: Racks, topic: str) -> None:
    leader = racks.leaders(topic)[0]
    near = next(id for id in racks.nodes if id != leader)
    before = racks.fetches(near, topic)
    consumer = ConfluentConsumer(
        {"bootstrap.servers": racks.bootstrap, "group.id": f"g{next(_groups)}", "client.rack": f"r{near}"}
    )
    seen: list[int] = []
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])

        def more() -> bool:
            seen.extend(int(each.value() or b"") for each in consumer.consume(1000, 0.2) if not each.error())
            return len(seen) >= COUNT

        eventually(more, seconds_max=30)
    finally:
        consumer.close()
    assert seen == list(range(COUNT))
    assert racks.fetches(near, topic) > before


def test_our_consumer_reads_next_door_and_comes_back(racks: Racks) -> None:
    name = create_topic(racks, 1)
    write(racks, name, COUNT)
    leader = racks.leaders(name)[0]
    near = next(id for id in racks.nodes if id != leader)
    before = racks.fetches(near, name)

    async def read() -> list[int]:
        seen: list[int] = []
        async with Consumer(
            racks.bootstrap,
            group_id=f"g{next(_groups)}",
            client_rack=f"r{near}",
            auto_offset_reset="earliest",
        ) as consumer:
            await consumer.subscribe([name])

            async def until(count: int) -> None:
                while len(seen) < count:
                    seen.extend(int(each.value or b"") for each in await consumer.poll(timeout=0.5))

            await asyncio.wait_for(until(COUNT), 30)
            assert racks.fetches(near, name) > before
            await asyncio.to_thread(racks.nodes[near].kill)
            await asyncio.to_thread(write, racks, name, COUNT)
            await asyncio.wait_for(until(2 * COUNT), 30)
        return seen

    try:
        assert asyncio.run(read()) == [*range(COUNT), *range(COUNT)]
    finally:
        racks.nodes[near].kill()
        racks.nodes[near].start()
        racks.wait_in_sync(name, 3)
