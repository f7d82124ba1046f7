"""Creating topics: names, sizes, placement, settings.

C1  A topic is made whole or not at all: TopicRecord, its ConfigRecords, its PartitionRecords, in one decision.
C2  Topics of one request stand or fall alone; one that is named twice fails, whatever it says.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from ottla.controller.configs import new_topic_configs
from ottla.controller.names import CLUSTER_METADATA, invalid_name
from ottla.controller.placement import place
from ottla.controller.view import RECORDS_MAX, View, check_size
from ottla.metadata.settings.describe import describe_topic
from ottla.metadata.topics import PartitionState
from ottla.replicated.decision import Decision
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.records.metadata import TopicRecord

Wish = CreateTopicsRequest.CreatableTopic
Result = CreateTopicsResponse.CreatableTopicResult


def create_topics(
    view: View, request: CreateTopicsRequest, describable: Collection[str] | None = None
) -> Decision[CreateTopicsResponse]:
    """Make the topics that can be made. Only `describable` ones show their settings; None shows all."""
    counts = Counter(topic.name for topic in request.topics)
    wishes = [topic for topic in request.topics if counts[topic.name] == 1 and topic.name != CLUSTER_METADATA]
    if sum(_partitions_wanted(view, topic) for topic in wishes) > RECORDS_MAX:
        raise BrokerError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    results: list[Result] = []
    records: list[Message] = []
    settings = _Settings(view)
    for topic in wishes:
        try:
            made, partitions = _create(view, topic)
        except BrokerError as error:
            results.append(Result(name=topic.name, error_code=error.code, error_message=error.message))
            continue
        assert isinstance(made[0], TopicRecord)
        records += made
        check_size(records)
        shown = describable is None or topic.name in describable
        result = Result(name=topic.name, topic_id=made[0].topic_id, error_message=None)
        if shown:
            result.num_partitions = len(partitions)
            result.replication_factor = len(partitions[0].replicas)
            result.configs = settings.of(topic)
        else:
            result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        results.append(result)
    for name, count in counts.items():
        if count > 1:
            results.append(_refusal(name, "Duplicate topic name."))
        elif name == CLUSTER_METADATA:
            results.append(_refusal(name, f"Creation of internal topic {CLUSTER_METADATA} is prohibited."))
    return Decision(CreateTopicsResponse(topics=results), () if request.validate_only else tuple(records))


def new_partition(view: View, replicas: Sequence[int]) -> PartitionState | None:
    """A new partition on these replicas, led by the first that is active; None when none is."""
    isr = tuple(broker for broker in replicas if view.is_active(broker))
    if not isr:
        return None
    directories = tuple(view.default_directory(broker) for broker in replicas)
    return PartitionState(isr[0], 0, 0, tuple(replicas), isr, directories)


def check_assignment(view: View, replicas: Sequence[int], replication_factor: int | None) -> None:
    """Refuse replicas that a user wrote down wrongly; all partitions of a topic have equally many."""
    prefix = "The manual partition assignment includes"
    if not replicas:
        raise _invalid_assignment(f"{prefix} an empty replica list.")
    previous = None
    for broker in sorted(replicas):
        if broker not in view.image.brokers:
            raise _invalid_assignment(f"{prefix} broker {broker}, but no such broker is registered.")
        if broker == previous:
            raise _invalid_assignment(f"{prefix} the broker {broker} more than once.")
        previous = broker
    if replication_factor is not None and len(replicas) != replication_factor:
        raise _invalid_assignment(
            f"{prefix} a partition with {len(replicas)} replica(s), but this is not consistent with previous "
            f"partitions, which have {replication_factor} replica(s)."
        )


def _partitions_wanted(view: View, topic: Wish) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return view.number("num.partitions") if topic.num_partitions == -1 else max(topic.num_partitions, 0)


def _create(view: View, topic: Wish) -> tuple[list[Message], list[PartitionState]]:
    _check_name(view, topic.name)
    configs = new_topic_configs(view, topic.name, [(config.name, config.value) for config in topic.configs])
    partitions = _assigned(view, topic) if topic.assignments else _placed(view, topic)
    topic_id = view.entropy.uuid()
    records: list[Message] = [TopicRecord(name=topic.name, topic_id=topic_id), *configs]
    records += [state.record(topic_id, index) for index, state in enumerate(partitions)]
    return records, partitions


def _check_name(view: View, name: str) -> None:
    if name in view.image.topics.by_name:
        raise BrokerError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    reason = invalid_name(name)
    if reason is not None:
        raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    alike = view.collisions.with_name(name)
    if alike is not None:
        raise BrokerError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {alike}"
        )


def _assigned(view: View, topic: Wish) -> list[PartitionState]:
    prefix = "A manual partition assignment was specified, but"
    if topic.replication_factor != -1:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"{prefix} replication factor was not set to -1.")
    if topic.num_partitions != -1:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"{prefix} numPartitions was not set to -1.")
    partitions: dict[int, PartitionState] = {}
    replication_factor = None
    for assignment in topic.assignments:
        index, replicas = assignment.partition_index, assignment.broker_ids
        if index in partitions:
            raise _invalid_assignment(f"Found multiple manual partition assignments for partition {index}")
        check_assignment(view, replicas, replication_factor)
        replication_factor = len(replicas)
        state = new_partition(view, replicas)
        if state is None:
            raise _invalid_assignment(
                f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
                "controlled shutdown."
            )
        partitions[index] = state
    if partitions.keys() != set(range(len(partitions))):
        raise _invalid_assignment("partitions should be a consecutive 0-based integer sequence")
    return [partitions[index] for index in range(len(partitions))]


def _placed(view: View, topic: Wish) -> list[PartitionState]:
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        message = "Replication factor must be larger than 0, or -1 to use the default value."
        raise BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        message = "Number of partitions was set to an invalid non-positive value."
        raise BrokerError(ErrorCode.INVALID_PARTITIONS, message)
    replicas = topic.replication_factor
    if replicas == -1:
        replicas = view.number("default.replication.factor")
    unable = f"Unable to replicate the partition {replicas} time(s)"
    try:
        placed = place(view.usable_brokers(), _partitions_wanted(view, topic), replicas, view.entropy)
    except BrokerError as error:
        raise BrokerError(error.code, f"{unable}: {error.message}") from None
    partitions = []
    for each in placed:
        state = new_partition(view, each)
        if state is None:
            message = f"{unable}: All brokers are currently fenced or in controlled shutdown."
            raise BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR, message)
        partitions.append(state)
    return partitions


class _Settings:
    """The settings of new topics as the answer shows them; those of topics that set none are worked out once."""

    __slots__ = ("_inherited", "_view")

    def __init__(self, view: View) -> None:
        self._view = view
        self._inherited: list[Result.CreatableTopicConfigs] | None = None

    def of(self, topic: Wish) -> list[Result.CreatableTopicConfigs]:
        if topic.configs:
            return self._described(
                {config.name: config.value for config in topic.configs if config.value is not None}
            )
        if self._inherited is None:
            self._inherited = self._described({})
        return self._inherited

    def _described(self, overrides: Mapping[str, str]) -> list[Result.CreatableTopicConfigs]:
        return [
            Result.CreatableTopicConfigs(
                name=each.name,
                value=None if each.sensitive else each.value,
                read_only=each.read_only,
                config_source=each.source,
                is_sensitive=each.sensitive,
            )
            for each in sorted(describe_topic(self._view.values, overrides), key=lambda each: each.name)
        ]


def _refusal(name: str, message: str) -> Result:
    return Result(name=name, error_code=ErrorCode.INVALID_REQUEST, error_message=message)


def _invalid_assignment(message: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
