"""Which role a replica takes: what the metadata says of another life of the node is not for this one."""

from typing import Any
from unittest.mock import Mock

from ottla.metadata.topics import PartitionState
from ottla.partition.partition import Partition
from ottla.partition.roles import Roles


def roles(*, is_registered: bool) -> tuple[Roles, Any]:
    made = Roles(1, lambda: 0, lambda: {"replica.lag.time.max.ms": 30_000})
    made.is_registered = is_registered
    following = Mock()
    made.attach(following, Mock())
    return made, following


def state(*replicas: int) -> PartitionState:
    return PartitionState(
        replicas=replicas, isr=replicas, leader=1, leader_epoch=0, partition_epoch=0, directories=()
    )


def replica() -> Partition:
    log = Mock(start_offset=0, end_offset=0)
    log.config.min_insync_replicas = 2
    return Partition(log, b"i" * 16, 0, Mock())


def test_a_node_leads_nothing_that_others_could_have_led_before_the_metadata_knows_its_life() -> None:
    made, following = roles(is_registered=False)
    partition = replica()
    made.assume(partition, state(1, 2, 3), Mock())
    assert not partition.is_leader
    assert not following.follow.called, "it does not follow itself"
    made.is_registered = True
    made.assume(partition, state(1, 2, 3), Mock())
    assert partition.is_leader


def test_a_sole_replica_leads_at_once() -> None:
    made, _ = roles(is_registered=False)
    partition = replica()
    made.assume(partition, state(1), Mock())
    assert partition.is_leader


def test_what_a_replica_had_before_it_was_alone_is_committed() -> None:
    """It followed, and has all of it on its disk: with no other replica left nothing has to be waited for."""
    made, _ = roles(is_registered=True)
    partition = replica()
    partition.follow(1)
    partition.log.end_offset = partition.durable_offset = 7
    assert partition.high_watermark == 0
    made.assume(partition, state(1), Mock())
    assert partition.high_watermark == 7
