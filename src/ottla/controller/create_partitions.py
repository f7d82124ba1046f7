"""More partitions for topics that exist."""

from collections import Counter
from collections.abc import Sequence

from ottla.controller.create_topics import check_assignment, new_partition
from ottla.controller.placement import place
from ottla.controller.view import RECORDS_MAX, View, check_size
from ottla.metadata.topics import PartitionState
from ottla.replicated.decision import Decision
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse

Wish = CreatePartitionsRequest.CreatePartitionsTopic
Result = CreatePartitionsResponse.CreatePartitionsTopicResult


def create_partitions(view: View, request: CreatePartitionsRequest) -> Decision[CreatePartitionsResponse]:
    """Grow the topics that can grow to the count they shall have."""
    check_size(request.topics)
    times = Counter(topic.name for topic in request.topics)
    results = [
        Result(name=name, error_code=ErrorCode.INVALID_REQUEST, error_message="Duplicate topic name.")
        for name, count in times.items()
        if count > 1
    ]
    records: list[Message] = []
    for topic in request.topics:
        if times[topic.name] > 1:
            continue
        try:
            made = _grow(view, topic)
            if len(records) + len(made) > RECORDS_MAX:
                raise BrokerError(
                    ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
                )
        except BrokerError as error:
            results.append(Result(name=topic.name, error_code=error.code, error_message=error.message))
        else:
            records += made
            results.append(Result(name=topic.name))
    return Decision(
        CreatePartitionsResponse(results=results), () if request.validate_only else tuple(records)
    )


def _grow(view: View, wish: Wish) -> list[Message]:
    topic = view.image.topics.by_name.get(wish.name)
    if topic is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    count = len(topic.partitions)
    if wish.count == count:
        raise BrokerError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {count} partition(s).")
    if wish.count < count:
        message = f"The topic {wish.name} currently has {count} partition(s); {wish.count} would not be an increase."
        raise BrokerError(ErrorCode.INVALID_PARTITIONS, message)
    additional = wish.count - count
    replication_factor = len(topic.partitions[0].replicas)
    if wish.assignments is None:
        if additional > RECORDS_MAX:
            raise BrokerError(
                ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
            )
        placed: Sequence[Sequence[int]] = place(
            view.usable_brokers(), additional, replication_factor, view.entropy
        )
    else:
        placed = [assignment.broker_ids for assignment in wish.assignments]
        if len(placed) != additional:
            message = (
                f"Attempted to add {additional} additional partition(s), but only {len(placed)} assignment(s) were "
                "specified."
            )
            raise BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        for replicas in placed:
            check_assignment(view, replicas, replication_factor)
    return [
        _partition(view, replicas, index, manual=wish.assignments is not None).record(topic.id, index)
        for index, replicas in enumerate(placed, count)
    ]


def _partition(view: View, replicas: Sequence[int], index: int, *, manual: bool) -> PartitionState:
    state = new_partition(view, replicas)
    if state is not None:
        return state
    if manual:
        message = (
            f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
            "controlled shutdown."
        )
        raise BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    message = (
        f"Unable to replicate the partition {len(replicas)} time(s): All brokers are currently fenced or in "
        "controlled shutdown."
    )
    raise BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR, message)
