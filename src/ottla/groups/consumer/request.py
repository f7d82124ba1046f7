"""What a ConsumerGroupHeartbeat must look like, whatever the state of the group."""

from collections.abc import Sequence

from ottla.groups.consumer.member import LEAVES, LEAVES_FOR_NOW
from ottla.groups.member_limits import check_names
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

# From this version on, members name themselves.
_NAMED_VERSION_MIN = 1


def check_request(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]) -> None:
    """Raise BrokerError for a request that makes no sense by itself."""
    epoch = request.member_epoch
    if version >= _NAMED_VERSION_MIN or epoch > 0 or epoch == LEAVES:
        _check_filled(request.member_id, "MemberId can't be empty.")
    _check_filled(request.group_id, "GroupId can't be empty.")
    _check_filled(request.instance_id, "InstanceId can't be empty.")
    _check_filled(request.rack_id, "RackId can't be empty.")
    if request.subscribed_topic_names:
        check_names("SubscribedTopicNames", request.subscribed_topic_names)
    if epoch == 0:
        _check_join(request)
    elif epoch == LEAVES_FOR_NOW:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif epoch < LEAVES_FOR_NOW:
        raise _invalid("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        message = (
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}."
        )
        raise BrokerError(ErrorCode.UNSUPPORTED_ASSIGNOR, message)


def is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether a member says everything, as it does when it joins and after an error."""
    return (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        message = "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
        raise _invalid(message)


def _check_filled(value: str | None, message: str) -> None:
    if value is not None and not value.strip():
        raise _invalid(message)


def _invalid(message: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REQUEST, message)
