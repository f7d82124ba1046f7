"""Topic settings: defaults from the broker, overrides, and refusals."""

import pytest

from ottla.metadata.settings.error import ConflictingSettings, InvalidValue, UnknownSetting
from ottla.metadata.settings.layers import BrokerValues
from ottla.metadata.settings.topic import TOPIC, effective_topic, topic_defaults, validate_topic


def test_without_a_broker_the_defaults_are_kafkas() -> None:
    assert topic_defaults({}) == {n: s.default_value for n, s in TOPIC.items() if not s.internal}
    assert topic_defaults(BrokerValues({})) == topic_defaults({})


@pytest.mark.parametrize(
    ("static", "retention_ms"),
    [
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.ms": "-1"}, -1),
        ({"log.retention.hours": "-5"}, -1),
    ],
)
def test_units_of_retention(static: dict[str, str], retention_ms: int) -> None:
    assert topic_defaults(BrokerValues(static))["retention.ms"] == retention_ms


def test_units_of_roll_and_flush() -> None:
    values = BrokerValues(
        {"log.roll.hours": "1", "log.roll.jitter.hours": "2", "log.flush.scheduler.interval.ms": "5"}
    )
    defaults = topic_defaults(values)
    assert defaults["segment.ms"] == 3_600_000
    assert defaults["segment.jitter.ms"] == 7_200_000
    assert defaults["flush.ms"] == 5


def test_an_override_wins_over_the_broker() -> None:
    broker = BrokerValues({"log.segment.bytes": "2097152"}, {"log.cleanup.policy": "compact"})
    assert effective_topic(broker, {})["segment.bytes"] == 2_097_152
    assert effective_topic(broker, {})["cleanup.policy"] == ("compact",)
    assert effective_topic(broker, {"segment.bytes": "1048576"})["segment.bytes"] == 1_048_576


def test_the_internal_segment_size_knows_no_lower_bound() -> None:
    values = effective_topic({}, {"internal.segment.bytes": "100"})
    assert values["segment.bytes"] == 100
    assert "internal.segment.bytes" not in values


def test_unknown_overrides_are_passed_over_but_not_accepted() -> None:
    assert effective_topic({}, {"from.the.future": "1"}) == topic_defaults({})
    with pytest.raises(UnknownSetting, match=r"^Unknown topic config name: retentoin\.ms$") as refused:
        validate_topic({"retentoin.ms": "1"})
    assert refused.value.hint == "did you mean retention.ms?"


def test_refused_values() -> None:
    with pytest.raises(
        InvalidValue, match=r"Invalid value -2 for configuration retention\.ms: Value must be at least -1"
    ):
        validate_topic({"retention.ms": "-2"})
    with pytest.raises(InvalidValue, match="String must be one of: compact, delete"):
        validate_topic({"cleanup.policy": "keep"})
    validate_topic({"cleanup.policy": "", "retention.ms": "-1"})


def test_lags_must_fit_together_also_with_the_brokers() -> None:
    with pytest.raises(ConflictingSettings, match=r"\(10\) > max\.compaction\.lag\.ms \(5\)"):
        validate_topic({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"})
    broker = BrokerValues({"log.cleaner.max.compaction.lag.ms": "5"})
    with pytest.raises(ConflictingSettings):
        validate_topic({"min.compaction.lag.ms": "10"}, broker)


def test_remote_storage_needs_the_brokers_consent() -> None:
    with pytest.raises(ConflictingSettings, match="Tiered Storage functionality is disabled in the broker"):
        validate_topic({"remote.storage.enable": "true"})
    validate_topic(
        {"remote.storage.enable": "true"}, BrokerValues({"remote.log.storage.system.enable": "true"})
    )
