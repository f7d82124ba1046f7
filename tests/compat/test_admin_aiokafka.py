"""aiokafka's admin client, which speaks the oldest versions that Kafka 4 still serves."""

import asyncio
from collections.abc import Awaitable, Callable

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from tests.compat.clients import AioKafka, Sample


def with_admin(bootstrap: str, work: Callable[[AIOKafkaAdminClient], Awaitable[None]]) -> None:
    async def run() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            await asyncio.wait_for(work(admin), 30)
        finally:
            await admin.close()

    asyncio.run(run())


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    deadline = asyncio.get_running_loop().time() + 10
    while not await condition():
        assert asyncio.get_running_loop().time() < deadline, "the condition did not come true in time"


def test_topic_from_birth_to_death(bootstrap: str, topic_name: str) -> None:
    async def partition_count(admin: AIOKafkaAdminClient) -> int:
        [found] = await admin.describe_topics([topic_name])
        return len(found["partitions"])

    async def work(admin: AIOKafkaAdminClient) -> None:
        made = await admin.create_topics([NewTopic(topic_name, 2, 1, topic_configs={"retention.ms": "9000"})])
        assert [tuple(each[:2]) for each in made.topic_errors] == [(topic_name, 0)]

        async def there() -> bool:
            return topic_name in await admin.list_topics() and await partition_count(admin) == 2

        await until(there)
        again = await admin.create_topics([NewTopic(topic_name, 2, 1)])
        assert [each[1] for each in again.topic_errors] == [36]  # TOPIC_ALREADY_EXISTS
        await admin.create_partitions({topic_name: NewPartitions(4)})

        async def grown() -> bool:
            return await partition_count(admin) == 4

        await until(grown)
        removed = await admin.delete_topics([topic_name])
        assert [tuple(each) for each in removed.topic_error_codes] == [(topic_name, 0)]

        async def gone() -> bool:
            return topic_name not in await admin.list_topics()

        await until(gone)

    with_admin(bootstrap, work)


def test_configs(bootstrap: str, topic: str) -> None:
    async def values(admin: AIOKafkaAdminClient, names: list[str]) -> dict[str, str]:
        wanted = ConfigResource(ConfigResourceType.TOPIC, topic, configs=dict.fromkeys(names))
        [answer] = await admin.describe_configs([wanted])
        [(error, _, _, name, entries)] = answer.resources
        assert (error, name) == (0, topic)
        return {entry[0]: entry[1] for entry in entries}

    async def work(admin: AIOKafkaAdminClient) -> None:
        names = ["retention.ms", "segment.bytes"]
        assert await values(admin, names) == {"retention.ms": "604800000", "segment.bytes": "1073741824"}
        change = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"retention.ms": "4000"})
        [answer] = await admin.alter_configs([change])
        assert [each[0] for each in answer.resources] == [0]

        async def changed() -> bool:
            return (await values(admin, names))["retention.ms"] == "4000"

        await until(changed)

    with_admin(bootstrap, work)


def test_configs_of_the_broker(bootstrap: str) -> None:
    async def work(admin: AIOKafkaAdminClient) -> None:
        wanted = ConfigResource(ConfigResourceType.BROKER, "1", configs={"node.id": None})
        [answer] = await admin.describe_configs([wanted])
        [resource] = answer.resources
        assert resource[0] == 0
        assert [entry[:2] for entry in resource[4]] == [("node.id", "1")]

    with_admin(bootstrap, work)


def test_delete_records(bootstrap: str, topic: str) -> None:
    AioKafka().produce(bootstrap, topic, [Sample(value=b"%d" % n) for n in range(5)])

    async def work(admin: AIOKafkaAdminClient) -> None:
        place = TopicPartition(topic, 0)
        assert await admin.delete_records({place: RecordsToDelete(before_offset=2)}) == {place: 2}

    with_admin(bootstrap, work)
    assert [each.offset for each in AioKafka().read(bootstrap, topic, 3, start_offset=2)] == [2, 3, 4]


def test_cluster(bootstrap: str) -> None:
    async def work(admin: AIOKafkaAdminClient) -> None:
        cluster = await admin.describe_cluster()
        host, port = bootstrap.split(":")
        assert [(each["node_id"], each["host"], each["port"]) for each in cluster["brokers"]] == [
            (1, host, int(port))
        ]
        assert cluster["controller_id"] == 1

    with_admin(bootstrap, work)
