"""Settings of one group, changed by IncrementalAlterConfigs on a group resource, and their broker-wide defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.metadata.settings.definition import ANY, BOOLEAN, INT, MEDIUM, STRING, Setting, Value, by_name
from ottla.metadata.settings.error import ConflictingSettings, UnknownSetting
from ottla.metadata.settings.rule import OffsetReset, at_least, one_of

if TYPE_CHECKING:
    from collections.abc import Mapping

GROUP_SETTINGS: tuple[Setting, ...] = (
    Setting("consumer.assignment.interval.ms", INT, 1000, MEDIUM, at_least(0),
            "Shortest time between two assignments computed for the consumer group; the default of 1000 means a "
            "millisecond for each of its members, up to a thousand."),
    Setting("consumer.heartbeat.interval.ms", INT, 5000, MEDIUM, at_least(1),
            "How often members of the consumer group send a heartbeat."),
    Setting("consumer.session.timeout.ms", INT, 45_000, MEDIUM, at_least(1),
            "Silence after which a member of the consumer group is taken for gone."),
    Setting("errors.deadletterqueue.copy.record.enable", BOOLEAN, False, MEDIUM, ANY,
            "Whether a record that goes to the share group's dead-letter topic is copied there, with key, value and "
            "headers; without, only where it was and why it was given up is written.", later=True),
    Setting("errors.deadletterqueue.topic.name", STRING, "", MEDIUM, ANY,
            "Topic that is told of records the share group gave up, which were rejected or tried too often; none when "
            "empty.", later=True),
    Setting("share.assignment.interval.ms", INT, 1000, MEDIUM, at_least(0),
            "Shortest time between two assignments computed for the share group; the default of 1000 means a "
            "millisecond for each of its members, up to a thousand."),
    Setting("share.auto.offset.reset", STRING, "latest", MEDIUM, OffsetReset(),
            "Where the share group begins in a partition it has never read: earliest, latest, or a duration ago."),
    Setting("share.delivery.count.limit", INT, 5, MEDIUM, at_least(2),
            "How often a record is handed to the share group before it is given up."),
    Setting("share.heartbeat.interval.ms", INT, 5000, MEDIUM, at_least(1),
            "How often members of the share group send a heartbeat."),
    Setting("share.isolation.level", STRING, "read_uncommitted", MEDIUM,
            one_of("read_committed", "read_uncommitted"),
            "Whether the share group is handed records of open and aborted transactions."),
    Setting("share.partition.max.record.locks", INT, 2000, MEDIUM, at_least(100),
            "How many records of one partition the share group may hold at a time."),
    Setting("share.record.lock.duration.ms", INT, 30_000, MEDIUM, at_least(1000),
            "How long a member of the share group holds a record before it is offered to another."),
    Setting("share.renew.acknowledge.enable", BOOLEAN, True, MEDIUM, ANY,
            "Whether a member of the share group may ask for more time for a record it holds."),
    Setting("share.session.timeout.ms", INT, 45_000, MEDIUM, at_least(1),
            "Silence after which a member of the share group is taken for gone."),
    Setting("streams.assignment.interval.ms", INT, 1000, MEDIUM, at_least(0),
            "Shortest time between two assignments computed for the streams group."),
    Setting("streams.heartbeat.interval.ms", INT, 5000, MEDIUM, at_least(1),
            "How often members of the streams group send a heartbeat."),
    Setting("streams.initial.rebalance.delay.ms", INT, 3000, MEDIUM, at_least(0),
            "How long a new streams group waits for more members before its first assignment."),
    Setting("streams.num.standby.replicas", INT, 0, MEDIUM, at_least(0),
            "Standby copies kept of each stateful task of the streams group."),
    Setting("streams.session.timeout.ms", INT, 45_000, MEDIUM, at_least(1),
            "Silence after which a member of the streams group is taken for gone."),
)

GROUP: dict[str, Setting] = by_name(GROUP_SETTINGS)

_OWN = {
    "errors.deadletterqueue.copy.record.enable",
    "errors.deadletterqueue.topic.name",
    "share.auto.offset.reset",
    "share.isolation.level",
    "share.renew.acknowledge.enable",
}

GROUP_SYNONYMS: dict[str, str] = {name: f"group.{name}" for name in GROUP if name not in _OWN}

# Settings that a broker bounds from below and above, by the names of the bounds.
BOUNDS: dict[str, tuple[str, str]] = {
    f"{kind}.{what}": (f"group.{kind}.min.{what}", f"group.{kind}.max.{what}")
    for kind, whats in {
        "consumer": ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"),
        "share": (
            "heartbeat.interval.ms",
            "session.timeout.ms",
            "record.lock.duration.ms",
            "delivery.count.limit",
            "partition.max.record.locks",
            "assignment.interval.ms",
        ),
        "streams": ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"),
    }.items()
    for what in whats
} | {"streams.num.standby.replicas": ("", "group.streams.max.standby.replicas")}


def effective_group(broker_values: Mapping[str, Value], overrides: Mapping[str, str]) -> dict[str, Value]:
    """The typed value of every setting of a group that sets `overrides`."""
    values: dict[str, Value] = {}
    for setting in GROUP_SETTINGS:
        inherited = broker_values.get(GROUP_SYNONYMS.get(setting.name, ""))
        values[setting.name] = setting.default_value if inherited is None else inherited
    for name, text in overrides.items():
        if name in GROUP:
            values[name] = GROUP[name].parse(text)
    return values


def group_in_force(broker_values: Mapping[str, Value], overrides: Mapping[str, str]) -> dict[str, Value]:
    """What a group goes by: the bounds of the broker may be narrower by now than when `overrides` were set."""
    values = effective_group(broker_values, overrides)
    for name in overrides.keys() & BOUNDS.keys():
        value = values[name]
        low, high = (broker_values.get(bound) for bound in BOUNDS[name])
        assert isinstance(value, int)
        if isinstance(low, int):
            value = max(value, low)
        if isinstance(high, int):
            value = min(value, high)
        values[name] = value
    return values


def validate_group(overrides: Mapping[str, str], broker_values: Mapping[str, Value]) -> None:
    """Raise SettingError unless `overrides` may be set on a group under this broker's bounds."""
    for name in overrides:
        if name not in GROUP:
            raise UnknownSetting("group", name, GROUP)
    values = {name: GROUP[name].parse(text) for name, text in overrides.items()}
    for name, bounds in BOUNDS.items():
        if name in values:
            _check_bounds(name, values[name], bounds, broker_values)
    effective = effective_group(broker_values, overrides)
    for kind in ("consumer", "share", "streams"):
        session, beat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        session_ms, beat_ms = effective[session], effective[beat]
        assert isinstance(session_ms, int)
        assert isinstance(beat_ms, int)
        if (session in overrides or beat in overrides) and session_ms <= beat_ms:
            raise _refused(session, f"must be greater than {beat}", f"> {beat_ms}")
    letters = "errors.deadletterqueue.topic.name"
    if str(effective[letters]).startswith("__"):
        message = f"{letters}: DLQ topic name must not start with '__'"
        raise ConflictingSettings(message, name=letters, allowed="a name that does not begin with __")


def validate_group_defaults(broker_values: Mapping[str, Value]) -> None:
    """Raise SettingError unless the broker's own settings for groups keep to its bounds for them."""
    for name, (low_name, high_name) in BOUNDS.items():
        low, high = broker_values.get(low_name), broker_values.get(high_name)
        if isinstance(low, int) and isinstance(high, int) and high < low:
            raise _refused(high_name, f"must be greater than or equal to {low_name}", f">= {low}")
        synonym = GROUP_SYNONYMS[name]
        _check_bounds(synonym, broker_values.get(synonym), (low_name, high_name), broker_values)
    for kind in ("consumer", "share", "streams"):
        session, beat = f"group.{kind}.session.timeout.ms", f"group.{kind}.heartbeat.interval.ms"
        session_ms, beat_ms = broker_values.get(session), broker_values.get(beat)
        assert isinstance(session_ms, int)
        assert isinstance(beat_ms, int)
        if beat_ms >= session_ms:
            raise _refused(beat, f"must be less than {session}", f"< {session_ms}")


def _check_bounds(
    name: str, value: Value, bounds: tuple[str, str], broker_values: Mapping[str, Value]
) -> None:
    low, high = (broker_values.get(bound) for bound in bounds)
    assert isinstance(value, int)
    if isinstance(low, int) and value < low:
        raise _refused(name, f"must be greater than or equal to {bounds[0]}", f">= {low}")
    if isinstance(high, int) and value > high:
        raise _refused(name, f"must be less than or equal to {bounds[1]}", f"<= {high}")


def _refused(name: str, reason: str, allowed: str) -> ConflictingSettings:
    return ConflictingSettings(f"{name} {reason}", name=name, allowed=allowed)
