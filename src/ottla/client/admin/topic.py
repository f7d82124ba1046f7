"""Descriptions of topics, and topics to create."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ottla.client.admin.operation import Operation, operations
from ottla.client.admin.setting_text import setting_text
from ottla.wire.messages.create_partitions import CreatePartitionsRequest
from ottla.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.messages.describe_topic_partitions import DescribeTopicPartitionsResponse
from ottla.wire.messages.metadata import MetadataResponse
from ottla.wire.uuid import uuid_text

DescribedTopic: TypeAlias = (
    DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
    | MetadataResponse.MetadataResponseTopic
)


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. -1 means the broker's default. `assignment` has the brokers of each partition."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, object] = field(default_factory=dict)
    assignment: Mapping[int, Sequence[int]] | None = None


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """A topic that was created. `configs` is None if this client may not see them."""

    name: str
    id: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str | None] | None


@dataclass(frozen=True, slots=True)
class TopicListing:
    """A topic in a list."""

    name: str
    id: str
    is_internal: bool
    partitions: int


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """A partition. `leader` is -1 if there is none. `eligible_leaders` is None if the broker does not support them."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]
    eligible_leaders: tuple[int, ...] | None = None
    last_known_eligible: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic with its partitions in order. `operations` is None unless the call asked for them."""

    name: str
    id: str
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]
    operations: frozenset[Operation] | None = None


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """The new total number of partitions of a topic. `assignment` has the brokers of each new partition."""

    count: int
    assignment: Sequence[Sequence[int]] | None = None


def creatable(new: NewTopic) -> CreateTopicsRequest.CreatableTopic:
    """Return a new topic as the wire has it."""
    kind = CreateTopicsRequest.CreatableTopic
    return kind(
        name=new.name,
        num_partitions=-1 if new.assignment else new.partitions,
        replication_factor=-1 if new.assignment else new.replication_factor,
        assignments=[
            kind.CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))
            for partition, brokers in (new.assignment or {}).items()
        ],
        configs=[
            kind.CreatableTopicConfig(name=name, value=setting_text(value))
            for name, value in new.configs.items()
        ],
    )


def growing(name: str, given: int | NewPartitions) -> CreatePartitionsRequest.CreatePartitionsTopic:
    """Return a topic's new partitions as the wire has them."""
    kind = CreatePartitionsRequest.CreatePartitionsTopic
    new = given if isinstance(given, NewPartitions) else NewPartitions(given)
    assignments = None
    if new.assignment is not None:
        assignments = [
            kind.CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in new.assignment
        ]
    return kind(name=name, count=new.count, assignments=assignments)


def created(answer: CreateTopicsResponse.CreatableTopicResult) -> CreatedTopic:
    """Return what the wire says of a topic that was made."""
    hidden = answer.configs is None or answer.topic_config_error_code
    configs = None if hidden else {each.name: each.value for each in answer.configs or ()}
    return CreatedTopic(
        answer.name, uuid_text(answer.topic_id), answer.num_partitions, answer.replication_factor, configs
    )


def described(
    answer: DescribedTopic, before: TopicDescription | None = None, *, with_operations: bool = False
) -> TopicDescription:
    """Return what the wire says of a topic, behind the partitions of the page before."""
    earlier = () if before is None else before.partitions
    partitions = (
        PartitionDescription(
            each.partition_index,
            each.leader_id,
            each.leader_epoch,
            tuple(each.replica_nodes),
            tuple(each.isr_nodes),
            tuple(each.offline_replicas),
            _brokers(getattr(each, "eligible_leader_replicas", None)),
            _brokers(getattr(each, "last_known_elr", None)),
        )
        for each in answer.partitions
    )
    return TopicDescription(
        answer.name or "",
        uuid_text(answer.topic_id),
        answer.is_internal,
        tuple(sorted((*earlier, *partitions), key=lambda each: each.partition)),
        operations(answer.topic_authorized_operations) if with_operations else None,
    )


def _brokers(ids: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if ids is None else tuple(ids)
