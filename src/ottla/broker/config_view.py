"""What there is to say about the settings of a resource: a topic, a broker, a group, a subscription, a logger.

V1  A topic's settings are described from the image and from this broker's own values, since what a topic does not set
    it inherits from the broker it lives on.
V2  Only this broker knows what its properties file says, so another broker's settings are asked of that broker.
V3  Secrets have no value here.
"""

from collections.abc import Collection

from ottla.broker.broker import Broker
from ottla.broker.loggers import levels, node_id_of
from ottla.controller.names import invalid_name
from ottla.metadata.config import ConfigType
from ottla.metadata.settings.describe import (
    Description,
    describe_broker,
    describe_broker_default,
    describe_client_metrics,
    describe_group,
    describe_topic,
)
from ottla.metadata.settings.layers import Source
from ottla.wire.errors import BrokerError, ErrorCode

Names = Collection[str] | None


def describe(broker: Broker, kind: int, name: str, names: Names = None) -> list[Description]:
    """Every setting of a resource, or those asked for by name. BrokerError says why not."""
    values = broker.settings
    configs = broker.image.configs
    if kind == ConfigType.TOPIC:
        _check_topic(broker, name)
        return describe_topic(values, configs.of(kind, name), names)
    if kind == ConfigType.BROKER:
        if not name:
            return describe_broker_default(values, names)
        expected = f"{broker.node_id} or empty string,"
        _check_broker(broker, name, f"Unexpected broker id, expected {expected} but received {name}")
        return describe_broker(values, names)
    if kind == ConfigType.BROKER_LOGGER:
        _check_named(name, "Broker id must not be empty")
        _check_broker(broker, name, f"Unexpected broker id, expected {broker.node_id} but received {name}")
        return _loggers(names)
    if kind == ConfigType.CLIENT_METRICS:
        _check_named(name, "Client metrics subscription name must not be empty")
        return describe_client_metrics(configs.of(kind, name), names)
    if kind == ConfigType.GROUP:
        _check_named(name, "Group name must not be empty")
        return describe_group(values, configs.of(kind, name), names)
    raise BrokerError(ErrorCode.INVALID_REQUEST, f"Unexpected resource type {kind} for resource {name}")


def _check_topic(broker: Broker, name: str) -> None:
    fault = invalid_name(name)
    if fault is not None:
        raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    if name not in broker.image.topics.by_name:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _check_broker(broker: Broker, name: str, message: str) -> None:
    if node_id_of(name, "Broker id") != broker.node_id:
        raise BrokerError(ErrorCode.INVALID_REQUEST, message)


def _check_named(name: str, message: str) -> None:
    if not name:
        raise BrokerError(ErrorCode.INVALID_REQUEST, message)


def _loggers(names: Names) -> list[Description]:
    source = Source.DYNAMIC_BROKER_LOGGER_CONFIG
    return [
        Description(
            name=name,
            value=level,
            source=source,
            read_only=False,
            sensitive=False,
            synonyms=(),
            type=0,
            doc=None,
        )
        for name, level in levels().items()
        if not names or name in names
    ]
