"""Descriptions of groups of all kinds."""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ottla.client.admin.operation import Operation, operations
from ottla.client.record import TopicPartition
from ottla.wire.errors import ProtocolError
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeResponse
from ottla.wire.messages.consumer_protocol import ConsumerProtocolAssignment
from ottla.wire.messages.describe_groups import DescribeGroupsResponse
from ottla.wire.messages.share_group_describe import ShareGroupDescribeResponse
from ottla.wire.messages.streams_group_describe import StreamsGroupDescribeResponse


class GroupKind(enum.Enum):
    """The protocol of a group."""

    UNKNOWN = "unknown"
    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"

    @classmethod
    def _missing_(cls, value: object) -> "GroupKind":
        word = str(value).lower()
        return next((kind for kind in cls if kind.value == word), cls.UNKNOWN)


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group in a list. The state is Kafka's, such as Stable or Empty."""

    id: str
    kind: GroupKind
    state: str
    protocol_type: str
    coordinator: int


class Task(NamedTuple):
    """A task of a streams group: one subtopology on one partition."""

    subtopology: str
    partition: int


class Tasks(NamedTuple):
    """The tasks of a member of a streams group."""

    active: frozenset[Task] = frozenset()
    standby: frozenset[Task] = frozenset()
    warmup: frozenset[Task] = frozenset()


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group. Fields that this kind of group does not have are None or empty."""

    id: str
    client_id: str
    host: str
    instance_id: str | None = None
    rack: str | None = None
    epoch: int | None = None
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assignment: frozenset[TopicPartition] = frozenset()
    target: frozenset[TopicPartition] | None = None
    speaks_classic: bool | None = None
    metadata: bytes = b""
    tasks: Tasks | None = None
    target_tasks: Tasks | None = None
    process_id: str | None = None
    topology_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Subtopology:
    """A part of the topology of a streams group, with its topics."""

    id: str
    source_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]
    repartition_source_topics: tuple[str, ...]
    changelog_topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group with its members. Fields that this kind of group does not have are None or empty."""

    id: str
    kind: GroupKind
    state: str
    coordinator: int
    members: tuple[Member, ...]
    protocol_type: str = ""
    assignor: str = ""
    epoch: int | None = None
    assignment_epoch: int | None = None
    topology_epoch: int | None = None
    subtopologies: tuple[Subtopology, ...] = ()
    operations: frozenset[Operation] | None = None

    @property
    def is_simple(self) -> bool:
        """Whether the group has only offsets: its consumers assign partitions by hand."""
        return self.kind is GroupKind.CLASSIC and not self.protocol_type


def described_classic(group: DescribeGroupsResponse.DescribedGroup, coordinator: int) -> GroupDescription:
    """Return what the wire says of a classic group."""
    reads = group.protocol_type in {"", "consumer"}
    members = (
        Member(
            each.member_id,
            each.client_id,
            each.client_host,
            each.group_instance_id,
            assignment=assigned(bytes(each.member_assignment)) if reads else frozenset(),
            metadata=bytes(each.member_metadata),
        )
        for each in group.members
    )
    return GroupDescription(
        group.group_id,
        GroupKind.CLASSIC,
        group.group_state,
        coordinator,
        tuple(members),
        group.protocol_type,
        group.protocol_data,
        operations=operations(group.authorized_operations),
    )


def described_consumer(
    group: ConsumerGroupDescribeResponse.DescribedGroup, coordinator: int
) -> GroupDescription:
    """Return what the wire says of a consumer group."""
    members = (
        _member(
            each,
            topics=tuple(each.subscribed_topic_names),
            pattern=each.subscribed_topic_regex or None,
            assignment=_partitions(each.assignment.topic_partitions),
            target=_partitions(each.target_assignment.topic_partitions),
            speaks_classic=None if each.member_type < 0 else each.member_type == 0,
        )
        for each in group.members
    )
    return _with_epochs(group, GroupKind.CONSUMER, coordinator, members)


def described_share(group: ShareGroupDescribeResponse.DescribedGroup, coordinator: int) -> GroupDescription:
    """Return what the wire says of a share group."""
    members = (
        _member(
            each,
            topics=tuple(each.subscribed_topic_names),
            assignment=_partitions(each.assignment.topic_partitions),
        )
        for each in group.members
    )
    return _with_epochs(group, GroupKind.SHARE, coordinator, members)


def described_streams(
    group: StreamsGroupDescribeResponse.DescribedGroup, coordinator: int
) -> GroupDescription:
    """Return what the wire says of a streams group."""
    members = (
        _member(
            each,
            speaks_classic=each.is_classic,
            tasks=_tasks(each.assignment),
            target_tasks=_tasks(each.target_assignment),
            process_id=each.process_id,
            topology_epoch=each.topology_epoch,
        )
        for each in group.members
    )
    topology = group.topology
    parts = (
        Subtopology(
            each.subtopology_id,
            tuple(each.source_topics),
            tuple(each.repartition_sink_topics),
            tuple(topic.name for topic in each.repartition_source_topics),
            tuple(topic.name for topic in each.state_changelog_topics),
        )
        for each in (topology.subtopologies or () if topology is not None else ())
    )
    return _with_epochs(
        group,
        GroupKind.STREAMS,
        coordinator,
        members,
        topology_epoch=None if topology is None else topology.epoch,
        subtopologies=tuple(parts),
    )


def assigned(data: bytes) -> frozenset[TopicPartition]:
    """Return the partitions of a classic consumer, as its group's leader wrote them down."""
    if len(data) < 2:
        return frozenset()
    # A later version only adds what an earlier reader passes over.
    version = min(int.from_bytes(data[:2], "big"), ConsumerProtocolAssignment.versions[-1])
    try:
        read = ConsumerProtocolAssignment.decode(data[2:], version)
    except ProtocolError:
        return frozenset()
    return frozenset(
        TopicPartition(each.topic, number) for each in read.assigned_partitions for number in each.partitions
    )


def _member(each: Any, **more: Any) -> Member:
    return Member(
        each.member_id,
        each.client_id,
        each.client_host,
        getattr(each, "instance_id", None),
        each.rack_id,
        each.member_epoch,
        **more,
    )


def _with_epochs(
    group: Any, kind: GroupKind, coordinator: int, members: Iterable[Member], **more: Any
) -> GroupDescription:
    return GroupDescription(
        group.group_id,
        kind,
        group.group_state,
        coordinator,
        tuple(members),
        kind.value,
        getattr(group, "assignor_name", None) or "",
        group.group_epoch,
        group.assignment_epoch,
        operations=operations(group.authorized_operations),
        **more,
    )


def _partitions(topics: Iterable[Any]) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(each.topic_name, number) for each in topics for number in each.partitions)


def _tasks(assignment: StreamsGroupDescribeResponse.Assignment) -> Tasks:
    kinds: Mapping[str, Iterable[Any]] = {
        "active": assignment.active_tasks,
        "standby": assignment.standby_tasks,
        "warmup": assignment.warmup_tasks,
    }
    return Tasks(
        **{
            kind: frozenset(Task(each.subtopology_id, number) for each in tasks for number in each.partitions)
            for kind, tasks in kinds.items()
        }
    )
