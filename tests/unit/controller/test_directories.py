"""Which directory holds a replica."""

import pytest

from ottla.metadata.directory import LOST
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from tests.unit.controller.stage import Stage, directory, wish


def assign(stage: Stage, broker: int, target: bytes, *topics: str, index: int = 0) -> list[int]:
    kind = AssignReplicasToDirsRequest.DirectoryData
    by_name = stage.image.topics.by_name
    ids = [by_name[name].id if name in by_name else bytes([5] * 16) for name in topics]
    partitions = [kind.TopicData.PartitionData(partition_index=index)]
    request = AssignReplicasToDirsRequest(
        broker_id=broker,
        broker_epoch=stage.image.brokers[broker].epoch,
        directories=[
            kind(id=target, topics=[kind.TopicData(topic_id=id, partitions=partitions) for id in ids])
        ],
    )
    response = stage.do(lambda controller, now: controller.assign_replicas_to_dirs(request, now))
    return [each.partitions[0].error_code for each in response.directories[0].topics]


def test_brokers_say_which_directory_holds_a_replica() -> None:
    stage = Stage(2)
    stage.register(1, directories=2)
    stage.heartbeat(1)
    stage.create(wish("one", assignments={0: [1]}), wish("two", assignments={0: [2]}))
    assert assign(stage, 1, directory(1, 1), "one", "two", "absent") == [
        ErrorCode.NONE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ]
    assert stage.state("one").directories == (directory(1, 1),)
    assert stage.state("one").leader_epoch == 0
    assert assign(stage, 1, directory(1, 1), "one", index=9) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


@pytest.mark.parametrize("target", [directory(9), LOST])
def test_a_replica_in_a_directory_that_is_offline_does_not_lead(target: bytes) -> None:
    stage = Stage(1, 2)
    stage.create(wish("one", assignments={0: [2, 1]}))
    assert assign(stage, 2, target, "one") == [ErrorCode.NONE]
    state = stage.state("one")
    assert (state.leader, state.isr, state.directories) == (1, (1,), (target, directory(1)))


def test_an_old_cluster_knows_no_directories() -> None:
    stage = Stage(features={"metadata.version": 16})
    with pytest.raises(BrokerError) as refused:
        stage.do(
            lambda controller, now: controller.assign_replicas_to_dirs(AssignReplicasToDirsRequest(), now)
        )
    assert refused.value.code == ErrorCode.UNSUPPORTED_VERSION
