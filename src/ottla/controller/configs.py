"""Changing configurations of topics, brokers, groups and client-metrics subscriptions.

A1  All changes to one resource stand or fall together; resources stand or fall alone.
A2  What is checked is the whole configuration that would result, not the change.
A3  A broker's change is recorded even when the value stays, since it tells the broker to load files anew.
A4  Groups and subscriptions to client metrics have settings whether anybody knows them or not. How many of them have
    some, and how long names and values are, is bounded, since every node keeps all of it for good.
"""

import enum
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.controller.names import invalid_name
from ottla.controller.view import View, check_size
from ottla.metadata.config import ConfigType, Resource
from ottla.metadata.settings.broker import BROKER
from ottla.metadata.settings.client_metrics import validate_client_metrics
from ottla.metadata.settings.definition import Setting, Type
from ottla.metadata.settings.error import MistakenRequest, SettingError
from ottla.metadata.settings.group import validate_group
from ottla.metadata.settings.layers import validate_broker
from ottla.metadata.settings.pieces import pieces
from ottla.metadata.settings.topic import TOPIC, validate_topic
from ottla.replicated.decision import Decision
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from ottla.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.wire.records.metadata import ClearElrRecord, ConfigRecord

VALUE_CHARACTERS_MAX = 32_767
SETTINGS_MAX = 1_000  # of one resource in a request, which are decided at once
MIN_ISR = "min.insync.replicas"
CORDONED = "cordoned.log.dirs"
RESOURCE_NAME_MAX = 1_024  # characters, of a group or subscription that has settings


class Bound(NamedTuple):
    """How much there may be of resources that need not exist (A4)."""

    noun: str
    resources_max: int
    value_characters_max: int


BOUNDS = {
    ConfigType.GROUP: Bound("group", 10_000, 255),
    ConfigType.CLIENT_METRICS: Bound("client metrics subscription", 1_000, 4_096),
}


class Room:
    """How many more resources may get their first settings in a request (A4)."""

    def __init__(self, view: View) -> None:
        self._configs = view.image.configs
        self._new: Counter[int] = Counter()

    def check(self, resource: Resource, changes: Mapping[str, str | None]) -> None:
        """Refuse settings for which there is no room, else count their resource."""
        kind, name = resource
        bound = BOUNDS.get(kind)  # type: ignore[call-overload]  # of an int
        values = [value for value in changes.values() if value is not None]
        if bound is None or not values:
            return
        if len(name) > RESOURCE_NAME_MAX:
            raise _invalid_request(
                f"A {bound.noun} with settings has a name of at most {RESOURCE_NAME_MAX} characters."
            )
        if any(len(value) > bound.value_characters_max for value in values):
            raise _invalid_config(
                f"A setting of a {bound.noun} has at most {bound.value_characters_max} characters."
            )
        if name in self._configs.of_kind(kind):
            return
        if len(self._configs.of_kind(kind)) + self._new[kind] >= bound.resources_max:
            raise _invalid_request(
                f"There are settings of {bound.resources_max} {bound.noun}s, which is as many as there may be: "
                f"delete those of {bound.noun}s that are gone."
            )
        self._new[kind] += 1


class Operation(enum.IntEnum):
    """What to do to a value."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def incremental_alter_configs(
    view: View, request: IncrementalAlterConfigsRequest
) -> Decision[IncrementalAlterConfigsResponse]:
    """Change single values and leave the others."""
    times = Counter((each.resource_type, each.resource_name) for each in request.resources)
    responses, room = [], Room(view)
    records: list[Message] = []
    for each in request.resources:
        resource = (each.resource_type, each.resource_name)
        response = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
            resource_type=each.resource_type, resource_name=each.resource_name, error_message=None
        )
        try:
            _check_request(view, resource, times[resource], [config.name for config in each.configs])
            _check_nulls(
                [c.name for c in each.configs if c.value is None and c.config_operation != Operation.DELETE]
            )
            changes = {
                config.name: _changed(view, resource, config.name, config.config_operation, config.value)
                for config in each.configs
            }
            altered = _alter(view, resource, changes)
            room.check(resource, changes)
            records += altered
        except BrokerError as error:
            response.error_code, response.error_message = error.code, error.message
        check_size(records)
        responses.append(response)
    reply = IncrementalAlterConfigsResponse(responses=responses)
    return Decision(reply, () if request.validate_only else tuple(records))


def alter_configs(view: View, request: AlterConfigsRequest) -> Decision[AlterConfigsResponse]:
    """Replace whole configurations: what is not named falls back to its default."""
    times = Counter((each.resource_type, each.resource_name) for each in request.resources)
    responses, room = [], Room(view)
    records: list[Message] = []
    for each in request.resources:
        resource = (each.resource_type, each.resource_name)
        response = AlterConfigsResponse.AlterConfigsResourceResponse(
            resource_type=each.resource_type, resource_name=each.resource_name, error_message=None
        )
        try:
            _check_request(view, resource, times[resource], [config.name for config in each.configs])
            _check_nulls([config.name for config in each.configs if config.value is None])
            wanted: dict[str, str | None] = dict.fromkeys(view.image.configs.of(*resource))
            for config in each.configs:
                wanted.pop(config.name, None)  # so that what is named comes after what is dropped
                wanted[config.name] = config.value
            altered = _alter(view, resource, wanted)
            room.check(resource, wanted)
            records += altered
        except BrokerError as error:
            response.error_code, response.error_message = error.code, error.message
        check_size(records)
        responses.append(response)
    return Decision(
        AlterConfigsResponse(responses=responses), () if request.validate_only else tuple(records)
    )


def new_topic_configs(view: View, topic: str, configs: Sequence[tuple[str, str | None]]) -> list[Message]:
    """The records that give a new topic its configuration."""
    _check_count(len(configs))
    nulls = [name for name, value in configs if value is None]
    if nulls:
        message = f"Null value not supported for topic configs: {','.join(nulls)}"
        raise BrokerError(ErrorCode.INVALID_CONFIG, message)
    return _alter(view, (ConfigType.TOPIC, topic), dict(configs), is_new=True)


def _check_request(view: View, resource: Resource, count: int, names: list[str]) -> None:
    kind, resource_name = resource
    if count > 1:
        raise _invalid_request("Each resource must appear at most once.")
    _check_count(len(names))
    if len(set(names)) != len(names):
        raise _invalid_request("Error due to duplicate config keys")
    if kind not in {ConfigType.TOPIC, ConfigType.BROKER, ConfigType.CLIENT_METRICS, ConfigType.GROUP}:
        raise _invalid_request(f"Unknown resource type {kind}")
    if kind == ConfigType.BROKER and resource_name:
        try:
            node_id = int(resource_name)
        except ValueError:
            raise _invalid_request(f"Node id must be an integer, but it is: {resource_name}") from None
        known = node_id == view.node_id or node_id in view.image.brokers or node_id in view.image.controllers
        if not known:
            raise _invalid_request(
                f"Unexpected broker id, expected {view.node_id}, but received {resource_name}"
            )


def _check_count(count: int) -> None:
    if count > SETTINGS_MAX:
        raise _invalid_request(f"A request may name at most {SETTINGS_MAX} settings of a resource, not {count}.")


def _check_nulls(names: list[str]) -> None:
    if names:
        raise _invalid_request(f"Null value not supported for : {', '.join(names)}")


def _changed(view: View, resource: Resource, name: str, operation: int, value: str | None) -> str | None:
    if operation == Operation.SET:
        return value
    if operation == Operation.DELETE:
        return None
    if operation not in {Operation.APPEND, Operation.SUBTRACT}:
        raise _invalid_request(f"Unknown operations type {operation}")
    setting = _list_setting(resource[0], name, Operation(operation))
    current = view.image.configs.of(*resource).get(name)
    if current is None:
        current = setting.text(setting.default_value)
    parts = dict.fromkeys(part for part in pieces(current or "") if part)
    for part in pieces(value or ""):
        if operation == Operation.APPEND:
            parts[part] = None
        else:
            parts.pop(part, None)
    return ",".join(parts)


def _list_setting(kind: int, name: str, operation: Operation) -> Setting:
    """The setting to append to or subtract from, which has to be a list; groups and subscriptions have none."""
    if kind == ConfigType.BROKER:
        setting = BROKER.get(name)
        if setting is None:
            raise _invalid_config(f"Unknown config name: {name}")
        message = f"Config value {operation.name.lower()} is not allowed for config key: {name}"
    else:
        setting = TOPIC.get(name) if kind == ConfigType.TOPIC else None
        message = f"Can't {operation.name} to key {name} because its type is not LIST."
    if setting is None or setting.type is not Type.LIST:
        raise _invalid_config(message)
    return setting


def _alter(
    view: View, resource: Resource, changes: Mapping[str, str | None], *, is_new: bool = False
) -> list[Message]:
    kind, resource_name = resource
    current = view.image.configs.of(kind, resource_name)
    wanted = dict(current)
    records: list[Message] = []
    for name, value in changes.items():
        if value is None:
            wanted.pop(name, None)
        else:
            wanted[name] = value
        if current.get(name) != value or kind == ConfigType.BROKER:
            _check_change(view, resource, name, value)
            records.append(
                ConfigRecord(resource_type=kind, resource_name=resource_name, name=name, value=value)
            )
    _check_result(view, resource, wanted)
    if kind == ConfigType.TOPIC and not is_new and resource_name not in view.image.topics.by_name:
        raise BrokerError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{resource_name}' does not exist."
        )
    changed = {record.name for record in records if isinstance(record, ConfigRecord)}
    if view.image.features.elr and MIN_ISR in changed and not is_new:
        records.append(ClearElrRecord(topic_name=resource_name if kind == ConfigType.TOPIC else ""))
    return records


def _check_change(view: View, resource: Resource, name: str, value: str | None) -> None:
    features = view.image.features
    if resource[0] == ConfigType.BROKER and name == MIN_ISR and features.elr:
        if resource[1]:
            raise _invalid_config(f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled.")
        if value is None:
            raise _invalid_config(f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled.")
    if resource[0] == ConfigType.BROKER and name == CORDONED and features.metadata_version < 30:
        raise _invalid_config(
            f"The {CORDONED} configuration value cannot be set because it requires metadata.version >= 4.3-IV0"
        )
    if value is not None and len(value) > VALUE_CHARACTERS_MAX:
        raise _invalid_config(
            "The configuration value cannot be added because it exceeds the maximum value size of "
            f"{VALUE_CHARACTERS_MAX} bytes."
        )


def _check_result(view: View, resource: Resource, wanted: Mapping[str, str]) -> None:
    kind, name = resource
    try:
        if kind == ConfigType.TOPIC:
            _check_topic_name(name)
            validate_topic(wanted, view.values, view.topic_defaults)
        elif kind == ConfigType.BROKER:
            validate_broker(wanted, per_broker=bool(name))
        elif kind == ConfigType.CLIENT_METRICS:
            if not name:
                raise _invalid_request("Subscription name can't be empty")
            validate_client_metrics(wanted)
        else:
            if not name:
                raise _invalid_request("Default group resources are not allowed.")
            validate_group(wanted, view.values)
    except SettingError as error:
        # Kafka's broker calls a value it cannot apply to itself an invalid request (KAFKA-13609).
        if kind == ConfigType.BROKER or isinstance(error, MistakenRequest):
            raise _invalid_request(str(error)) from None
        raise _invalid_config(str(error)) from None


def _check_topic_name(name: str) -> None:
    if not name:
        raise _invalid_request("Default topic resources are not allowed.")
    reason = invalid_name(name)
    if reason is not None:
        raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)


def _invalid_request(message: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REQUEST, message)


def _invalid_config(message: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_CONFIG, message)
