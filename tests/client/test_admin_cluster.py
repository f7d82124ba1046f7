"""The cluster itself through the admin client: brokers, quorum, features, directories, leaders, records."""

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.client.admin import (
    EVERYTHING,
    Admin,
    ElectionType,
    Endpoint,
    OffsetSpec,
    Operation,
    Replica,
    ReplicaPlace,
    Upgrade,
)
from ottla.client.errors import ClientError, Refused, SomeFailed, Unsupported
from ottla.client.record import TopicPartition
from ottla.wire.errors import ErrorCode
from tests.compat.chosen import MakeTopic
from tests.peers.server import Server


def fill(bootstrap: str, topic: str, records: int = 10) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(records):
        producer.produce(topic, str(number).encode(), partition=0)
    assert producer.flush(20) == 0


def test_brokers_and_quorum(server: Server, run: Callable[..., None]) -> None:
    async def main() -> None:
        async with Admin(server.bootstrap) as admin:
            described = await admin.cluster.describe()
            assert described.id == server.cluster_id and described.controller == 1
            [broker] = described.brokers
            assert (broker.id, broker.host, broker.port, broker.is_fenced) == (
                1,
                "127.0.0.1",
                server.port,
                False,
            )
            assert described.operations is None
            described = await admin.cluster.describe(operations=True, fenced=True)
            assert described.operations is not None and Operation.CREATE in described.operations
            quorum = await admin.cluster.quorum()
            assert quorum.leader == 1 and [each.id for each in quorum.voters] == [1]
            assert quorum.high_watermark > 0 and quorum.voters[0].log_end_offset >= quorum.high_watermark
            assert quorum.endpoints[1] == (Endpoint("CONTROLLER", "127.0.0.1", server.controller_port),)

    run(main())


def test_voters_and_registrations(server: Server, run: Callable[..., None]) -> None:
    async def main() -> None:
        async with Admin(server.bootstrap) as admin:
            directory = (await admin.cluster.quorum()).voters[0].directory_id
            for refused in (
                admin.cluster.add_voter(1, directory, (Endpoint("CONTROLLER", "127.0.0.1", 1),)),
                admin.cluster.remove_voter(9, directory),
                admin.cluster.remove_voter(1, directory, cluster_id="another"),
                admin.cluster.unregister_broker(77),
            ):
                with pytest.raises(Refused):
                    await refused

    run(main())


def test_what_a_broker_does_not_serve_is_said_at_once(bootstrap: str, run: Callable[..., None]) -> None:
    async def main() -> None:
        async with Admin(bootstrap) as admin:
            # Apache Kafka serves it only where a plugin takes the metrics.
            with pytest.raises(Unsupported, match="GetTelemetrySubscriptions not at all"):
                await admin.cluster.client_instance_id()

    run(main())


def test_features(bootstrap: str, run: Callable[..., None]) -> None:
    async def main() -> None:
        async with Admin(bootstrap) as admin:
            before = await admin.features.describe()
            assert before.epoch is not None
            level = before.finalized["metadata.version"].highest
            assert before.supported["metadata.version"].highest >= level
            assert before.finalized["transaction.version"].highest == 2
            await admin.features.update(
                {"transaction.version": 1}, Upgrade.SAFE_DOWNGRADE, validate_only=True
            )
            assert (await admin.features.describe()).finalized == before.finalized
            with pytest.raises(ClientError):
                await admin.features.update({"transaction.version": 99})
            with pytest.raises(ClientError):
                await admin.features.update({"no.such.feature": 1})

    run(main())


def test_directories(server: Server, topic: str, run: Callable[..., None]) -> None:
    fill(server.bootstrap, topic)
    key, replica = TopicPartition(topic, 0), Replica(topic, 0, 1)

    async def main() -> None:
        async with Admin(server.bootstrap) as admin:
            described = await admin.log_dirs.describe()
            [(path, found)] = described[1].items()
            assert Path(path) == server.log_dir and found.error is None
            assert found.total_bytes is not None and found.usable_bytes is not None
            assert found.replicas[key].size_bytes > 0 and not found.replicas[key].is_future
            described = await admin.log_dirs.describe([1], [key])
            assert described[1][path].replicas.keys() == {key}
            places = await admin.log_dirs.find([replica, Replica(topic, 5, 1)])
            assert places == {
                replica: ReplicaPlace(path, 0),
                Replica(topic, 5, 1): ReplicaPlace(),
            }
            await admin.log_dirs.move({replica: path})
            with pytest.raises(Refused) as caught:
                await admin.log_dirs.move({replica: "/no/such/directory"})
            assert caught.value.code is ErrorCode.LOG_DIR_NOT_FOUND
            with pytest.raises(SomeFailed):
                await admin.log_dirs.describe([1, 77])

    run(main())


def test_old_records_are_dropped(bootstrap: str, make_topic: MakeTopic, run: Callable[..., None]) -> None:
    topic = make_topic(2)
    fill(bootstrap, topic)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)

    async def main() -> None:
        async with Admin(bootstrap) as admin:
            assert await admin.partitions.delete_records({first: 4}) == {first: 4}
            assert (await admin.offsets.list({first: OffsetSpec.EARLIEST}))[first].offset == 4
            assert await admin.partitions.delete_records({first: EVERYTHING, second: EVERYTHING}) == {
                first: 10,
                second: 0,
            }
            with pytest.raises(Refused) as caught:
                await admin.partitions.delete_records({first: 11})
            assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
            with pytest.raises(SomeFailed) as several:
                await admin.partitions.delete_records({first: 10, TopicPartition(topic, 9): 0}, timeout=0.5)
            error = several.value.errors[TopicPartition(topic, 9)]
            assert isinstance(error, Refused) and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    run(main())


def test_leaders_are_elected(bootstrap: str, topic: str, run: Callable[..., None]) -> None:
    key = TopicPartition(topic, 0)

    async def main() -> None:
        async with Admin(bootstrap) as admin:
            assert await admin.partitions.elect([key]) == {key: False}
            assert await admin.partitions.elect([key], ElectionType.UNCLEAN) == {key: False}
            assert not any((await admin.partitions.elect()).values())
            with pytest.raises(Refused) as caught:
                await admin.partitions.elect([TopicPartition(topic, 9)])
            assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    run(main())


def test_replicas_are_moved(bootstrap: str, topic: str, run: Callable[..., None]) -> None:
    key = TopicPartition(topic, 0)

    async def main() -> None:
        async with Admin(bootstrap) as admin:
            await admin.partitions.reassign({key: [1]})
            assert await admin.partitions.reassignments() == {}
            assert await admin.partitions.reassignments([key]) == {}
            with pytest.raises(Refused) as caught:
                await admin.partitions.reassign({key: [77]})
            assert caught.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
            with pytest.raises(Refused) as caught:
                await admin.partitions.reassign({key: None})
            assert caught.value.code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS

    run(main())
