"""Group and client-metrics settings: the broker's bounds, and what a match may look like."""

import pytest

from ottla.metadata.settings.broker import BROKER
from ottla.metadata.settings.client_metrics import validate_client_metrics
from ottla.metadata.settings.error import (
    ConflictingSettings,
    InvalidValue,
    MistakenRequest,
    SettingError,
    UnknownSetting,
)
from ottla.metadata.settings.group import (
    BOUNDS,
    GROUP,
    GROUP_SYNONYMS,
    effective_group,
    group_in_force,
    validate_group,
)
from ottla.metadata.settings.layers import BrokerValues

VALUES = BrokerValues({})


def test_synonyms_and_bounds_exist_and_agree() -> None:
    for name, synonym in GROUP_SYNONYMS.items():
        assert BROKER[synonym].default == GROUP[name].default, name
    for name, bounds in BOUNDS.items():
        assert name in GROUP
        assert all(bound in BROKER for bound in bounds if bound)


def test_the_broker_gives_the_default() -> None:
    values = BrokerValues({"group.share.delivery.count.limit": "7"})
    assert effective_group(values, {})["share.delivery.count.limit"] == 7
    assert effective_group(values, {"share.delivery.count.limit": "9"})["share.delivery.count.limit"] == 9


def test_bounds_that_came_later_hold() -> None:
    values = BrokerValues(
        {"group.streams.min.heartbeat.interval.ms": "6000", "group.streams.max.standby.replicas": "1"}
    )
    overrides = {"streams.heartbeat.interval.ms": "5500", "streams.num.standby.replicas": "2"}
    found = group_in_force(values, overrides)
    assert (found["streams.heartbeat.interval.ms"], found["streams.num.standby.replicas"]) == (6000, 1)
    assert found["streams.session.timeout.ms"] == 45_000
    assert effective_group(values, overrides)["streams.num.standby.replicas"] == 2, "as it is described"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "consumer.session.timeout.ms",
            "44999",
            "consumer.session.timeout.ms must be greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (
            "share.heartbeat.interval.ms",
            "15001",
            "share.heartbeat.interval.ms must be less than or equal to group.share.max.heartbeat.interval.ms",
        ),
        (
            "streams.num.standby.replicas",
            "3",
            "streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas",
        ),
    ],
)
def test_out_of_bounds(name: str, text: str, message: str) -> None:
    with pytest.raises(ConflictingSettings) as refused:
        validate_group({name: text}, VALUES)
    assert str(refused.value) == message


def test_a_session_outlasts_its_heartbeat() -> None:
    values = BrokerValues(
        {"group.consumer.min.session.timeout.ms": "1000", "group.consumer.min.heartbeat.interval.ms": "1000"}
    )
    with pytest.raises(ConflictingSettings, match=r"must be greater than consumer\.heartbeat\.interval\.ms"):
        validate_group(
            {"consumer.session.timeout.ms": "2000", "consumer.heartbeat.interval.ms": "2000"}, values
        )


def test_names_and_values() -> None:
    validate_group(
        {"share.auto.offset.reset": "by_duration:PT1H", "share.isolation.level": "read_committed"}, VALUES
    )
    with pytest.raises(UnknownSetting, match="^Unknown group config name: x$"):
        validate_group({"x": "1"}, VALUES)
    with pytest.raises(InvalidValue):
        validate_group({"share.isolation.level": "dirty"}, VALUES)


def test_the_dead_letter_topic_is_none_of_kafkas_own() -> None:
    name = "errors.deadletterqueue.topic.name"
    for fine in ("", "dlq.orders", "anything"):
        validate_group({name: fine}, VALUES)
    with pytest.raises(ConflictingSettings) as refused:
        validate_group({name: "__consumer_offsets"}, VALUES)
    assert str(refused.value) == f"{name}: DLQ topic name must not start with '__'"
    with pytest.raises(InvalidValue):
        validate_group({"errors.deadletterqueue.copy.record.enable": "perhaps"}, VALUES)


def test_client_metrics() -> None:
    validate_client_metrics({"metrics": "a.,b.", "interval.ms": "100", "match": "client_id=app.*"})
    for bad in (
        {"intervall.ms": "100"},
        {"interval.ms": "99"},
        {"match": "client_id"},
        {"match": "colour=red"},
        {"match": "client_id=["},
        {"match": "client_id=a=b"},
        {"match": "client_id="},
    ):
        with pytest.raises(SettingError) as refused:
            validate_client_metrics(bad)
        assert isinstance(refused.value, MistakenRequest) == ("match" not in bad)
