"""What a StreamsGroupHeartbeat must look like, whatever the state of the group.

Static members, offsets of tasks, tasks to warm up and patterns for topics are in the message, but Kafka refuses them.
"""

from ottla.groups.member_limits import check_names
from ottla.groups.streams.member import LEAVES_FOR_NOW
from ottla.groups.streams.tasks import Tasks, table
from ottla.groups.streams.topology import names_of
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest


def check_request(request: StreamsGroupHeartbeatRequest) -> None:
    """Raise BrokerError for a request that makes no sense by itself."""
    _check_supported(request)
    _check_filled(request.member_id, "MemberId can't be empty.")
    _check_filled(request.group_id, "GroupId can't be empty.")
    _check_filled(request.rack_id, "RackId can't be empty.")
    check_names("ClientTags", [text for each in request.client_tags or () for text in (each.key, each.value)])
    epoch = request.member_epoch
    if epoch == 0:
        _check_join(request)
    elif epoch == LEAVES_FOR_NOW:
        raise _invalid("InstanceId can't be null.")
    elif epoch < LEAVES_FOR_NOW:
        raise _invalid(f"MemberEpoch is {epoch}, but must be greater than or equal to -2.")
    said = [
        tasks is not None for tasks in (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    ]
    if any(said) and not all(said):
        raise _invalid("If one task-type is non-null, all must be non-null.")
    if epoch != 0 and request.topology is not None:
        raise _invalid("Topology can only be provided when (re-)joining.")


def owned(request: StreamsGroupHeartbeatRequest) -> Tasks | None:
    """Return what a member says that it runs; None when it says nothing."""
    if request.active_tasks is None or request.standby_tasks is None or request.warmup_tasks is None:
        return None
    return Tasks(table(request.active_tasks), table(request.standby_tasks), table(request.warmup_tasks))


def _check_supported(request: StreamsGroupHeartbeatRequest) -> None:
    if request.instance_id is not None:
        raise _invalid("Static membership is not yet supported.")
    if request.task_offsets is not None:
        raise _invalid("TaskOffsets are not supported yet.")
    if request.task_end_offsets is not None:
        raise _invalid("TaskEndOffsets are not supported yet.")
    if request.warmup_tasks:
        raise _invalid("WarmupTasks are not supported yet.")
    if request.topology is not None and any(
        each.source_topic_regex for each in request.topology.subtopologies
    ):
        raise _invalid("Regular expressions for source topics are not supported yet.")


def check_topology(request: StreamsGroupHeartbeatRequest) -> list[str]:
    """Return every name in a topology; INVALID_REQUEST if they are too many to be looked at."""
    names = [] if request.topology is None else names_of(request.topology)
    check_names("Topology", names)
    return names


def _check_join(request: StreamsGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    for name, tasks in (
        ("ActiveTasks", request.active_tasks),
        ("StandbyTasks", request.standby_tasks),
        ("WarmupTasks", request.warmup_tasks),
    ):
        if tasks is None or tasks:
            raise _invalid(f"{name} must be empty when (re-)joining.")
    if request.topology is None:
        raise _invalid("Topology must be non-null when (re-)joining.")
    for subtopology in request.topology.subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions != 0:
                message = (
                    f"Changelog topic {topic.name} must have an undefined partition count, "
                    f"but it is set to {topic.partitions}."
                )
                raise BrokerError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def _check_filled(value: str | None, message: str) -> None:
    if value is not None and not value.strip():
        raise _invalid(message)


def _invalid(message: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REQUEST, message)
