"""Dynamic over static over default, and what DescribeConfigs says of it."""

import pytest

from ottla.metadata.settings.broker import BROKER, DYNAMIC, broker_setting, broker_synonyms
from ottla.metadata.settings.definition import Type, Update
from ottla.metadata.settings.describe import (
    Description,
    describe_broker,
    describe_broker_default,
    describe_client_metrics,
    describe_group,
    describe_topic,
)
from ottla.metadata.settings.error import InvalidValue, SettingError
from ottla.metadata.settings.layers import BrokerValues, Source, validate_broker


def only(found: list[Description]) -> Description:
    (one,) = found
    return one


def chain(described: Description) -> list[tuple[str, str | None, int]]:
    return [(link.name, link.value, link.source) for link in described.synonyms]


def test_the_strongest_layer_wins() -> None:
    name = "log.segment.bytes"
    static = BrokerValues({name: "2000000"})
    assert static[name] == 2_000_000
    assert static.with_dynamic({name: "3000000"}, {})[name] == 3_000_000
    assert static.with_dynamic({name: "3000000"}, {name: "4000000"})[name] == 4_000_000
    assert static.with_dynamic({}, {})[name] == 2_000_000
    assert static["num.partitions"] == 1


def test_stored_values_that_cannot_take_effect_are_passed_over() -> None:
    stored = {
        "log.segment.bytes": "few",
        "node.id": "7",
        "ssl.keystore.location": "/there",
        "from.the.future": "1",
    }
    values = BrokerValues({"node.id": "1"}, stored, stored)
    assert values["log.segment.bytes"] == BROKER["log.segment.bytes"].default
    assert values["node.id"] == 1
    assert values["ssl.keystore.location"] is None
    assert BrokerValues({}, {"listeners": "A://:1"}, {})["listeners"] == ("PLAINTEXT://:9092",)


def test_what_nobody_knows_is_shown_without_its_value() -> None:
    values = BrokerValues({}, {"my.plugin.key": "all"}, {"my.plugin.key": "secret"})
    found = only(describe_broker(values, ["my.plugin.key"]))
    assert (found.value, found.sensitive, found.read_only, found.type) == (None, True, True, 0)
    assert found.source is Source.DYNAMIC_BROKER_CONFIG
    assert only(describe_broker_default(values)).name == "my.plugin.key"
    assert "my.plugin.key" not in values


@pytest.mark.parametrize(
    ("overrides", "per_broker", "message"),
    [
        ({"node.id": "1"}, True, "Cannot update these configs dynamically: [node.id]"),
        (
            {"ssl.keystore.type": "PEM"},
            True,
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            "[ssl.keystore.type]",
        ),
        (
            {"listeners": "PLAINTEXT://:1"},
            False,
            "Cannot update these configs at default cluster level, broker id must be specified: [listeners]",
        ),
        (
            {"max.connections": "-1"},
            False,
            "Invalid value -1 for configuration max.connections: Value must be at least 0",
        ),
    ],
)
def test_refused_changes(overrides: dict[str, str], per_broker: bool, message: str) -> None:
    with pytest.raises(SettingError) as refused:
        validate_broker(overrides, per_broker=per_broker)
    assert str(refused.value) == message


def test_allowed_changes() -> None:
    validate_broker({"log.retention.ms": "1000", "leader.replication.throttled.rate": "1"}, per_broker=False)
    validate_broker({"listener.name.internal.ssl.keystore.type": "PEM"}, per_broker=True)
    validate_broker({"listener.name.internal.max.connections": "5"}, per_broker=False)
    validate_broker({"log.retention.millis": "1000"}, per_broker=True)
    with pytest.raises(InvalidValue):
        validate_broker({"listener.name.internal.max.connections": "five"}, per_broker=False)


def test_what_may_change_at_run_time() -> None:
    assert DYNAMIC["listeners"].update is Update.PER_BROKER
    assert DYNAMIC["log.retention.ms"].update is Update.CLUSTER_WIDE
    assert "log.retention.hours" not in DYNAMIC
    assert "socket.request.max.bytes" not in DYNAMIC
    assert len([name for name in DYNAMIC if name in BROKER and not BROKER[name].later]) == 99


def test_names_with_a_listeners_prefix() -> None:
    assert broker_setting("listener.name.a.scram-sha-256.sasl.jaas.config") is BROKER["sasl.jaas.config"]
    assert broker_synonyms("listener.name.a.ssl.client.auth") == (
        "listener.name.a.ssl.client.auth",
        "ssl.client.auth",
    )
    assert broker_setting("listener.name.a.nothing") is None


def test_topic_descriptions_name_their_source() -> None:
    values = BrokerValues({"log.segment.bytes": "2000000"}, {"log.segment.bytes": "3000000"})
    described = only(describe_topic(values, {"segment.bytes": "4000000"}, ["segment.bytes"]))
    assert (described.value, described.source, described.type) == ("4000000", Source.TOPIC_CONFIG, Type.INT)
    assert chain(described) == [
        ("segment.bytes", "4000000", Source.TOPIC_CONFIG),
        ("log.segment.bytes", "3000000", Source.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ("log.segment.bytes", "2000000", Source.STATIC_BROKER_CONFIG),
        ("log.segment.bytes", "1073741824", Source.DEFAULT_CONFIG),
    ]
    inherited = only(describe_topic(values, {}, ["segment.bytes"]))
    assert (inherited.value, inherited.source) == ("3000000", Source.DYNAMIC_DEFAULT_BROKER_CONFIG)


def test_a_retention_in_hours_shows_no_synonym() -> None:
    described = only(describe_topic(BrokerValues({"log.retention.hours": "1"}), {}, ["retention.ms"]))
    assert (described.value, described.source, described.synonyms) == ("3600000", Source.DEFAULT_CONFIG, ())


def test_every_topic_setting_is_described_but_the_internal() -> None:
    assert len(describe_topic(BrokerValues({}), {})) == 33
    shown = describe_topic(BrokerValues({}), {"internal.segment.bytes": "9"})
    assert only([each for each in shown if each.name.startswith("internal")]).value == "9"


def test_broker_descriptions() -> None:
    values = BrokerValues(
        {"log.retention.hours": "1", "ssl.key.password": "hunter2", "unstable.api.versions.enable": "true"}
    )
    every = {each.name: each for each in describe_broker(values)}
    assert every.keys() == {name for name in BROKER if not BROKER[name].hidden} | {"unstable.api.versions.enable"}
    assert sum(not name.startswith("ottla.") for name in every) == 340 + 1, "Kafka's, and a hidden one that is set"
    assert every["log.retention.hours"].read_only
    assert not every["log.retention.ms"].read_only
    assert every["log.retention.ms"].value is None
    assert every["ssl.key.password"].sensitive
    assert "hunter2" not in repr(every["ssl.key.password"])
    assert every["sasl.enabled.mechanisms"].value == "GSSAPI"
    assert every["log.cleaner.io.max.bytes.per.second"].value == "1.7976931348623157E308"


def test_the_cluster_wide_description_has_nothing_else() -> None:
    values = BrokerValues({"log.retention.ms": "1"}, {"log.retention.ms": "2"}, {"log.retention.ms": "3"})
    described = only(describe_broker_default(values))
    assert (described.name, described.value) == ("log.retention.ms", "2")
    assert chain(described) == [("log.retention.ms", "2", Source.DYNAMIC_DEFAULT_BROKER_CONFIG)]


def test_group_and_client_metrics_descriptions() -> None:
    values = BrokerValues({"group.consumer.session.timeout.ms": "50000"})
    session = only(describe_group(values, {}, ["consumer.session.timeout.ms"]))
    assert (session.value, session.source) == ("50000", Source.STATIC_BROKER_CONFIG)
    reset = only(describe_group(values, {"share.auto.offset.reset": "earliest"}, ["share.auto.offset.reset"]))
    assert chain(reset) == [
        ("share.auto.offset.reset", "earliest", Source.GROUP_CONFIG),
        ("share.auto.offset.reset", "latest", Source.DEFAULT_CONFIG),
    ]
    assert len(describe_client_metrics({})) == 3
    interval = only(describe_client_metrics({"interval.ms": "100"}, ["interval.ms"]))
    assert interval.source is Source.CLIENT_METRICS_CONFIG
