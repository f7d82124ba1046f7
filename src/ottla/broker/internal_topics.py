"""The topics in which coordinators keep their state, made when the first coordinator is asked for.

Their settings are Kafka's. With fewer brokers than the replication factor asks for, Kafka cannot make them and its
clients wait for ever; here they get as many replicas as there are brokers (docs/adr/0023-internal-topics-are-made.md).
"""

from collections.abc import Callable
from typing import NamedTuple

from ottla.broker.broker import Broker
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

Config = CreateTopicsRequest.CreatableTopic.CreatableTopicConfig

_MADE = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


class InternalTopic(NamedTuple):
    """One of them: its name, the settings of the broker that shape it, and its own settings."""

    name: str
    partitions: str
    replication_factor: str
    configs: tuple[tuple[str, str], ...]
    # Topic settings whose values are settings of the broker.
    borrowed: tuple[tuple[str, str], ...]


OFFSETS = InternalTopic(
    "__consumer_offsets",
    "offsets.topic.num.partitions",
    "offsets.topic.replication.factor",
    (("cleanup.policy", "compact"), ("compression.type", "producer")),
    (("segment.bytes", "offsets.topic.segment.bytes"),),
)
TRANSACTIONS = InternalTopic(
    "__transaction_state",
    "transaction.state.log.num.partitions",
    "transaction.state.log.replication.factor",
    (
        ("cleanup.policy", "compact"),
        ("compression.type", "uncompressed"),
        ("unclean.leader.election.enable", "false"),
    ),
    (
        ("min.insync.replicas", "transaction.state.log.min.isr"),
        ("segment.bytes", "transaction.state.log.segment.bytes"),
    ),
)
SHARE_STATE = InternalTopic(
    "__share_group_state",
    "share.coordinator.state.topic.num.partitions",
    "share.coordinator.state.topic.replication.factor",
    (("cleanup.policy", "delete"), ("compression.type", "producer"), ("retention.ms", "-1")),
    (
        ("min.insync.replicas", "share.coordinator.state.topic.min.isr"),
        ("segment.bytes", "share.coordinator.state.topic.segment.bytes"),
    ),
)


def partitions(broker: Broker, topic: InternalTopic) -> int:
    """Return how many partitions the topic has, or will have once it is made."""
    known = broker.image.topics.by_name.get(topic.name)
    if known is not None:
        return len(known.partitions)
    count = broker.settings[topic.partitions]
    assert isinstance(count, int)
    return count


def make(broker: Broker, topic: InternalTopic, done: Callable[[ErrorCode], None]) -> None:
    """Make the topic unless it is there; `done` hears NONE once it can be used."""
    if topic.name in broker.image.topics.by_name:
        done(ErrorCode.NONE)
        return
    values = broker.settings
    wanted = values[topic.replication_factor]
    assert isinstance(wanted, int)
    replicas = max(1, min(wanted, len(broker.alive)))
    configs = [Config(name=name, value=value) for name, value in topic.configs]
    for name, key in topic.borrowed:
        value = values[key]
        if name == "min.insync.replicas":
            assert isinstance(value, int)
            value = min(value, replicas)
        configs.append(Config(name=name, value=str(value)))
    wish = CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.CreatableTopic(
                name=topic.name,
                num_partitions=partitions(broker, topic),
                replication_factor=replicas,
                configs=configs,
            )
        ]
    )

    def made(outcome: CreateTopicsResponse | BrokerError) -> None:
        code = outcome.code if isinstance(outcome, BrokerError) else outcome.topics[0].error_code
        done(ErrorCode.NONE if code in _MADE else ErrorCode.COORDINATOR_NOT_AVAILABLE)

    broker.ask_controller(
        wish, CreateTopicsResponse, lambda controller, now: controller.create_topics(wish, now), made
    )
