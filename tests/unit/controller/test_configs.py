"""Changing configurations: what is refused, what is recorded, and that a resource stands or falls whole."""

import pytest

from ottla.controller import configs
from ottla.controller.configs import Operation
from ottla.metadata.config import ConfigType
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.alter_configs import AlterConfigsRequest
from ottla.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.wire.records.metadata import ClearElrRecord, ConfigRecord
from tests.unit.controller.stage import Stage, wish

Incremental = IncrementalAlterConfigsRequest.AlterConfigsResource
Whole = AlterConfigsRequest.AlterConfigsResource
Change = tuple[str, Operation, str | None]
Answer = tuple[int, str | None]


@pytest.fixture
def stage() -> Stage:
    stage = Stage(1)
    stage.create(wish("one", configs={"retention.ms": "1000"}))
    return stage


def resource(kind: int, name: str, *changes: Change) -> Incremental:
    configs = [
        Incremental.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    return Incremental(resource_type=kind, resource_name=name, configs=configs)


def alter(stage: Stage, *resources: Incremental, validate_only: bool = False) -> list[Answer]:
    request = IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    response = stage.do(lambda controller, now: controller.incremental_alter_configs(request, now))
    assert [each.resource_name for each in response.responses] == [each.resource_name for each in resources]
    return [(each.error_code, each.error_message) for each in response.responses]


def replace(stage: Stage, kind: int, name: str, **configs: str | None) -> Answer:
    given = [Whole.AlterableConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    request = AlterConfigsRequest(resources=[Whole(resource_type=kind, resource_name=name, configs=given)])
    (answer,) = stage.do(lambda controller, now: controller.alter_configs(request, now)).responses
    return answer.error_code, answer.error_message


def topic(stage: Stage) -> dict[str, str]:
    return dict(stage.image.configs.of(ConfigType.TOPIC, "one"))


SET, DELETE, APPEND, SUBTRACT = Operation.SET, Operation.DELETE, Operation.APPEND, Operation.SUBTRACT
OK = (ErrorCode.NONE, None)


def test_values_are_set_and_deleted(stage: Stage) -> None:
    assert alter(stage, resource(2, "one", ("segment.ms", SET, "5000"), ("retention.ms", DELETE, None))) == [
        OK
    ]
    assert topic(stage) == {"segment.ms": "5000"}


def test_a_value_that_stays_is_not_recorded_for_a_topic(stage: Stage) -> None:
    assert alter(stage, resource(2, "one", ("retention.ms", SET, "1000"))) == [OK]
    assert stage.records == []


def test_a_value_that_stays_is_recorded_for_a_broker(stage: Stage) -> None:
    for _ in range(2):
        assert alter(stage, resource(4, "", ("log.cleaner.threads", SET, "2"))) == [OK]
        assert [type(record) for record in stage.records] == [ConfigRecord]


def test_lists_are_appended_to_and_subtracted_from(stage: Stage) -> None:
    assert alter(stage, resource(2, "one", ("cleanup.policy", APPEND, "compact"))) == [OK]
    assert topic(stage)["cleanup.policy"] == "delete,compact"
    assert alter(stage, resource(2, "one", ("cleanup.policy", APPEND, "compact"))) == [OK]
    assert alter(stage, resource(2, "one", ("cleanup.policy", SUBTRACT, "delete"))) == [OK]
    assert topic(stage)["cleanup.policy"] == "compact"


@pytest.mark.parametrize("operation", [APPEND, SUBTRACT])
def test_only_lists_are_appended_to(stage: Stage, operation: Operation) -> None:
    assert alter(stage, resource(2, "one", ("retention.ms", operation, "1"))) == [
        (
            ErrorCode.INVALID_CONFIG,
            f"Can't {operation.name} to key retention.ms because its type is not LIST.",
        )
    ]


def test_a_resource_stands_or_falls_whole_and_alone(stage: Stage) -> None:
    answers = alter(
        stage,
        resource(2, "one", ("segment.ms", SET, "5000"), ("no.such", SET, "1")),
        resource(4, "", ("log.cleaner.threads", SET, "3")),
    )
    assert answers == [(ErrorCode.INVALID_CONFIG, "Unknown topic config name: no.such"), OK]
    assert topic(stage) == {"retention.ms": "1000"}
    assert stage.image.configs.of(ConfigType.BROKER, "")["log.cleaner.threads"] == "3"


def test_what_results_is_checked_not_only_what_changes(stage: Stage) -> None:
    assert alter(stage, resource(2, "one", ("max.compaction.lag.ms", SET, "10"))) == [OK]
    (answer,) = alter(stage, resource(2, "one", ("min.compaction.lag.ms", SET, "20")))
    assert answer[0] == ErrorCode.INVALID_CONFIG


def test_validate_only_records_nothing(stage: Stage) -> None:
    assert alter(stage, resource(2, "one", ("segment.ms", SET, "5000")), validate_only=True) == [OK]
    assert stage.records == []


@pytest.mark.parametrize(
    ("asked", "code", "words"),
    [
        (
            resource(2, "absent", ("segment.ms", SET, "1")),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'absent' does not exist.",
        ),
        (
            resource(2, "", ("segment.ms", SET, "1")),
            ErrorCode.INVALID_REQUEST,
            "Default topic resources are not allowed.",
        ),
        (
            resource(2, "a/b", ("segment.ms", SET, "1")),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid",
        ),
        (
            resource(2, "one", ("segment.ms", SET, None)),
            ErrorCode.INVALID_REQUEST,
            "Null value not supported for : segment.ms",
        ),
        (
            resource(2, "one", ("segment.ms", SET, "1"), ("segment.ms", SET, "2")),
            ErrorCode.INVALID_REQUEST,
            "Error due to duplicate config keys",
        ),
        (
            resource(2, "one", ("segment.ms", SET, "x" * 40_000)),
            ErrorCode.INVALID_CONFIG,
            "exceeds the maximum value size",
        ),
        (resource(8, "1", ("root", SET, "INFO")), ErrorCode.INVALID_REQUEST, "Unknown resource type 8"),
        (resource(99, "1", ("root", SET, "INFO")), ErrorCode.INVALID_REQUEST, "Unknown resource type 99"),
        (
            resource(4, "x", ("log.cleaner.threads", SET, "1")),
            ErrorCode.INVALID_REQUEST,
            "Node id must be an integer, but it is: x",
        ),
        (
            resource(4, "7", ("log.cleaner.threads", SET, "1")),
            ErrorCode.INVALID_REQUEST,
            "Unexpected broker id, expected 1, but received 7",
        ),
        (
            resource(4, "", ("no.such", APPEND, "1")),
            ErrorCode.INVALID_CONFIG,
            "Unknown config name: no.such",
        ),
        (
            resource(4, "", ("log.cleaner.threads", APPEND, "1")),
            ErrorCode.INVALID_CONFIG,
            "Config value append is not allowed for config key: log.cleaner.threads",
        ),
        (
            resource(4, "1", ("log.cleaner.threads", SUBTRACT, "1")),
            ErrorCode.INVALID_CONFIG,
            "Config value subtract is not allowed for config key: log.cleaner.threads",
        ),
        (
            resource(16, "s", ("metrics", APPEND, "a")),
            ErrorCode.INVALID_CONFIG,
            "Can't APPEND to key metrics because its type is not LIST.",
        ),
        (
            resource(4, "", ("log.cleaner.threads", SET, "x")),
            ErrorCode.INVALID_REQUEST,
            "Invalid value x for configuration log.cleaner.threads",
        ),
        (
            resource(4, "", ("node.id", SET, "2")),
            ErrorCode.INVALID_REQUEST,
            "Cannot update these configs dynamically",
        ),
        (
            resource(4, "1", ("min.insync.replicas", SET, "1")),
            ErrorCode.INVALID_CONFIG,
            "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
        ),
        (
            resource(4, "", ("min.insync.replicas", DELETE, None)),
            ErrorCode.INVALID_CONFIG,
            "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
        ),
        (
            resource(16, "", ("interval.ms", SET, "1000")),
            ErrorCode.INVALID_REQUEST,
            "Subscription name can't be empty",
        ),
        (
            resource(16, "s", ("interval.ms", SET, "1")),
            ErrorCode.INVALID_REQUEST,
            "interval must be between 100 and 3600000",
        ),
        (
            resource(16, "s", ("no.such", SET, "1")),
            ErrorCode.INVALID_REQUEST,
            "Unknown client metrics configuration: no.such",
        ),
        (
            resource(16, "s", ("interval.ms", SET, "soon")),
            ErrorCode.INVALID_CONFIG,
            "Invalid value soon for configuration interval.ms",
        ),
        (
            resource(16, "s", ("match", SET, f"client_id={'(' * 9000}")),
            ErrorCode.INVALID_CONFIG,
            "Illegal client matching pattern",
        ),
        (
            resource(32, "", ("consumer.session.timeout.ms", SET, "50000")),
            ErrorCode.INVALID_REQUEST,
            "Default group resources are not allowed.",
        ),
        (
            resource(32, "g", ("no.such", SET, "1")),
            ErrorCode.INVALID_CONFIG,
            "Unknown group config name: no.such",
        ),
    ],
)
def test_what_is_wrong_is_refused(stage: Stage, asked: Incremental, code: ErrorCode, words: str) -> None:
    ((found, message),) = alter(stage, asked)
    assert found == code
    assert message is not None
    assert words in message
    assert stage.records == []


def test_groups_and_subscriptions_have_configs(stage: Stage) -> None:
    assert alter(
        stage,
        resource(32, "g", ("consumer.session.timeout.ms", SET, "50000")),
        resource(16, "s", ("interval.ms", SET, "1000")),
        resource(4, "1", ("log.cleaner.threads", SET, "2")),
    ) == [OK, OK, OK]
    assert stage.image.configs.of(ConfigType.GROUP, "g") == {"consumer.session.timeout.ms": "50000"}


def test_a_broker_setting_that_nobody_knows_is_kept(stage: Stage) -> None:
    assert alter(stage, resource(4, "", ("my.plugin.colour", SET, "red"))) == [OK]
    assert alter(stage, resource(4, "1", ("my.plugin.colour", SET, "blue"))) == [OK]
    assert stage.image.configs.of(ConfigType.BROKER, "1") == {"my.plugin.colour": "blue"}
    assert alter(stage, resource(4, "1", ("my.plugin.colour", DELETE, None))) == [OK]
    assert stage.image.configs.of(ConfigType.BROKER, "1") == {}


def test_a_resource_named_twice_is_refused_twice(stage: Stage) -> None:
    twice = resource(2, "one", ("segment.ms", SET, "5000"))
    assert (
        alter(stage, twice, twice)
        == [(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")] * 2
    )


def test_changing_min_isr_forgets_eligible_leaders(stage: Stage) -> None:
    assert alter(stage, resource(2, "one", ("min.insync.replicas", SET, "2"))) == [OK]
    assert stage.records[-1] == ClearElrRecord(topic_name="one")
    assert alter(stage, resource(4, "", ("min.insync.replicas", SET, "2"))) == [OK]
    assert stage.records[-1] == ClearElrRecord(topic_name="")


def test_the_older_request_replaces_everything(stage: Stage) -> None:
    assert replace(stage, 2, "one", segment_ms="5000") == OK
    assert topic(stage) == {"segment.ms": "5000"}
    assert replace(stage, 2, "one", segment_ms=None) == (
        ErrorCode.INVALID_REQUEST,
        "Null value not supported for : segment.ms",
    )
    assert replace(stage, 2, "one") == OK
    assert topic(stage) == {}


def test_a_broker_default_reaches_topics_at_once(stage: Stage) -> None:
    assert alter(stage, resource(4, "", ("log.retention.ms", SET, "7000"))) == [OK]
    (result,) = stage.create(wish("two")).topics
    assert result.configs is not None
    shown = {each.name: (each.value, each.config_source) for each in result.configs}
    assert shown["retention.ms"] == ("7000", 3)


# Resources that nobody knows


@pytest.mark.parametrize(
    ("kind", "setting", "value"),
    [
        (ConfigType.GROUP, "consumer.session.timeout.ms", "50000"),
        (ConfigType.CLIENT_METRICS, "interval.ms", "10000"),
    ],
)
def test_only_so_many_invented_names_have_settings(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, kind: ConfigType, setting: str, value: str
) -> None:
    monkeypatch.setitem(configs.BOUNDS, kind, configs.BOUNDS[kind]._replace(resources_max=5))
    change: Change = (setting, SET, value)
    answers = alter(stage, *[resource(kind, f"g{number}", change) for number in range(8)])
    assert [code for code, _ in answers] == [0] * 5 + [ErrorCode.INVALID_REQUEST] * 3
    assert "delete those" in (answers[-1][1] or "")
    assert alter(stage, resource(kind, "g9", change))[0][0] == ErrorCode.INVALID_REQUEST
    assert replace(stage, kind, "g9", **{setting.replace(".", "_"): value})[0] == ErrorCode.INVALID_REQUEST
    assert alter(stage, resource(kind, "g0", (setting, SET, value[:-1] + "5" if kind == 32 else "5000"))) == [
        OK
    ]
    assert alter(stage, resource(kind, "g9", (setting, DELETE, None))) == [OK], "nothing is kept of it"
    assert alter(stage, resource(kind, "g0", (setting, DELETE, None))) == [OK]
    assert alter(stage, resource(kind, "g9", change)) == [OK]
    assert len(stage.image.configs.of_kind(kind)) == 5


def test_what_each_of_them_may_be_is_bounded(stage: Stage) -> None:
    timeout: Change = ("consumer.session.timeout.ms", SET, "50000")
    [(code, message)] = alter(stage, resource(ConfigType.GROUP, "g" * 1_025, timeout))
    assert code == ErrorCode.INVALID_REQUEST and "1024" in (message or "")
    [(code, _)] = alter(
        stage, resource(ConfigType.GROUP, "g", ("consumer.session.timeout.ms", SET, "50000".zfill(300)))
    )
    assert code == ErrorCode.INVALID_CONFIG
    assert alter(stage, resource(ConfigType.GROUP, "g" * 1_024, timeout)) == [OK]


def test_a_change_of_a_group_leaves_the_settings_of_topics_as_they_are(stage: Stage) -> None:
    before = stage.image.configs
    assert alter(stage, resource(ConfigType.GROUP, "g", ("consumer.session.timeout.ms", SET, "50000"))) == [
        OK
    ]
    assert stage.image.configs.of_kind(ConfigType.TOPIC) is before.of_kind(ConfigType.TOPIC)
