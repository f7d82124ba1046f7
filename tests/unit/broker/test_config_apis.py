"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources."""

import logging

import pytest

from ottla.broker.apis.alter_configs import API as ALTER
from ottla.broker.apis.describe_configs import API as DESCRIBE
from ottla.broker.apis.incremental_alter_configs import API as INCREMENTAL
from ottla.broker.apis.list_config_resources import API as LIST
from ottla.metadata.config import ConfigType
from ottla.metadata.settings.broker import BROKER
from ottla.metadata.settings.group import GROUP
from ottla.metadata.settings.topic import TOPIC
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.alter_configs import AlterConfigsRequest
from ottla.wire.messages.describe_configs import DescribeConfigsRequest
from ottla.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.wire.messages.list_config_resources import ListConfigResourcesRequest

SET, DELETE, APPEND, SUBTRACT = range(4)
DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC, DEFAULT = 2, 3, 4, 5


def describe(station, kind, name, keys=None, version=4, **options):
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys
    )
    (result,) = station.ask(
        DESCRIBE, DescribeConfigsRequest(resources=[resource], **options), version
    ).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def entry(result, name):
    return next(config for config in result.configs if config.name == name)


def change(station, kind, name, *changes, version=1, **options):
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            IncrementalAlterConfigsRequest.AlterConfigsResource.AlterableConfig(
                name=key, config_operation=operation, value=value
            )
            for key, operation, value in changes
        ],
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], **options)
    (result,) = station.ask(INCREMENTAL, request, version).responses
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result.error_code, result.error_message


# Describing


@pytest.mark.parametrize("version", DESCRIBE.versions)
def test_every_setting_of_a_topic_is_described(station, version):
    station.create("t", retention_ms="1000")
    result = describe(station, ConfigType.TOPIC, "t", version=version)
    assert (result.error_code, result.error_message) == (0, None)
    shown = {config.name for config in result.configs}
    assert shown == {name for name, setting in TOPIC.items() if not setting.hidden}
    retention = entry(result, "retention.ms")
    assert (retention.value, retention.config_source, retention.read_only) == ("1000", 1, False)
    if version >= 3:
        assert retention.config_type == 5


def test_keys_filter_and_synonyms_show_the_chain(station):
    station.create("t", max_message_bytes="2000000")
    asked = ["max.message.bytes", "nonsense"]
    result = describe(station, ConfigType.TOPIC, "t", asked, include_synonyms=True)
    (found,) = result.configs
    chain = [(each.name, each.value, each.source) for each in found.synonyms]
    assert chain == [("max.message.bytes", "2000000", 1), ("message.max.bytes", "1048588", DEFAULT)]
    assert entry(describe(station, ConfigType.TOPIC, "t", asked), "max.message.bytes").synonyms == []


def test_an_empty_list_of_keys_asks_for_all(station):
    station.create("t")
    everything = describe(station, ConfigType.TOPIC, "t").configs
    assert describe(station, ConfigType.TOPIC, "t", []).configs == everything


def test_documentation_comes_when_asked_for(station):
    station.create("t")
    with_words = describe(
        station, ConfigType.TOPIC, "t", ["retention.ms"], include_documentation=True
    ).configs[0]
    assert with_words.documentation == TOPIC["retention.ms"].doc
    assert describe(station, ConfigType.TOPIC, "t", ["retention.ms"]).configs[0].documentation is None


def test_an_absent_topic_and_an_impossible_one(station):
    absent = describe(station, ConfigType.TOPIC, "t")
    assert (absent.error_code, absent.configs) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])
    impossible = describe(station, ConfigType.TOPIC, "a b")
    assert impossible.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert impossible.error_message.startswith("Topic name is invalid")


def test_every_setting_of_this_broker_is_described(make_station):
    station = make_station(**{"log.retention.hours": "5", "ssl.keystore.password": "hunter2"})
    result = describe(station, ConfigType.BROKER, "1", include_synonyms=True)
    shown = {config.name: config for config in result.configs}
    assert shown.keys() >= {name for name, setting in BROKER.items() if not setting.hidden}
    assert (shown["node.id"].value, shown["node.id"].read_only) == ("1", True)
    hours = shown["log.retention.hours"]
    assert (hours.value, hours.config_source) == ("5", STATIC)
    assert [(each.value, each.source) for each in hours.synonyms] == [("5", STATIC), ("168", DEFAULT)]
    secret = shown["ssl.keystore.password"]
    assert (secret.value, secret.is_sensitive, secret.synonyms[0].value) == (None, True, None)
    assert "hunter2" not in repr(result)


def test_synonyms_run_from_the_broker_to_the_default(make_station):
    station = make_station(**{"log.cleaner.threads": "2"})
    assert change(station, ConfigType.BROKER, "", ("log.cleaner.threads", SET, "3"))[0] == 0
    assert change(station, ConfigType.BROKER, "1", ("log.cleaner.threads", SET, "4"))[0] == 0
    found = describe(station, ConfigType.BROKER, "1", ["log.cleaner.threads"], include_synonyms=True).configs[
        0
    ]
    assert (found.value, found.config_source) == ("4", DYNAMIC_BROKER)
    chain = [(each.value, each.source) for each in found.synonyms]
    assert chain == [("4", DYNAMIC_BROKER), ("3", DYNAMIC_DEFAULT), ("2", STATIC), ("1", DEFAULT)]
    everywhere = describe(station, ConfigType.BROKER, "", include_synonyms=True).configs
    # The controller itself sets min.insync.replicas for all brokers once eligible leader replicas are on.
    assert {(each.name, each.value, each.config_source) for each in everywhere} == {
        ("log.cleaner.threads", "3", DYNAMIC_DEFAULT),
        ("min.insync.replicas", "1", DYNAMIC_DEFAULT),
    }


def test_a_broker_change_holds_for_topics_at_once(station):
    station.create("t")
    assert change(station, ConfigType.BROKER, "", ("log.retention.ms", SET, "777"))[0] == 0
    found = describe(station, ConfigType.TOPIC, "t", ["retention.ms"]).configs[0]
    assert (found.value, found.config_source) == ("777", DYNAMIC_DEFAULT)
    assert station.table.by_name("t", 0).log.config.retention_ms == 777


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        (ConfigType.BROKER, "2", "Unexpected broker id, expected 1 or empty string, but received 2"),
        (ConfigType.BROKER, "one", "Broker id must be an integer, but it is: one"),
        (ConfigType.BROKER, "99999999999", "Broker id must be an integer, but it is: 99999999999"),
        (ConfigType.BROKER_LOGGER, "", "Broker id must not be empty"),
        (ConfigType.BROKER_LOGGER, "2", "Unexpected broker id, expected 1 but received 2"),
        (ConfigType.CLIENT_METRICS, "", "Client metrics subscription name must not be empty"),
        (ConfigType.GROUP, "", "Group name must not be empty"),
    ],
)
def test_resources_that_are_not_ours_to_describe(station, kind, name, message):
    result = describe(station, kind, name)
    assert (result.error_code, result.error_message, result.configs) == (
        ErrorCode.INVALID_REQUEST,
        message,
        [],
    )


def test_an_unknown_kind_spoils_the_whole_request(station):
    station.create("t")
    resource = DescribeConfigsRequest.DescribeConfigsResource
    resources = [resource(resource_type=2, resource_name="t"), resource(resource_type=3, resource_name="x")]
    results = station.ask(DESCRIBE, DescribeConfigsRequest(resources=resources)).results
    assert [each.error_code for each in results] == [ErrorCode.INVALID_REQUEST] * 2


def test_a_resource_that_is_named_often_is_described_twice_at_most(station):
    station.create("t")
    resource = DescribeConfigsRequest.DescribeConfigsResource
    resources = [resource(resource_type=4, resource_name="1", configuration_keys=None)] * 1000
    resources += [resource(resource_type=2, resource_name="t", configuration_keys=["retention.ms"])] * 2
    resources += [resource(resource_type=2, resource_name="t", configuration_keys=["segment.ms"])]
    results = station.ask(DESCRIBE, DescribeConfigsRequest(resources=resources)).results
    assert [(each.resource_name, each.error_code) for each in results] == [("1", 0)] * 2 + [("t", 0)] * 3
    names = [[entry.name for entry in each.configs] for each in results[2:]]
    assert names == [["retention.ms"], ["retention.ms"], ["segment.ms"]]


def test_a_group_inherits_from_the_broker(make_station):
    station = make_station(**{"group.consumer.session.timeout.ms": "46000"})
    assert change(station, ConfigType.GROUP, "g", ("consumer.heartbeat.interval.ms", SET, "6000"))[0] == 0
    result = describe(station, ConfigType.GROUP, "g", include_synonyms=True)
    assert {config.name for config in result.configs} == {
        name for name, each in GROUP.items() if not each.hidden
    }
    own = entry(result, "consumer.heartbeat.interval.ms")
    assert (own.value, own.config_source) == ("6000", 8)
    assert [(each.name, each.source) for each in own.synonyms] == [
        ("consumer.heartbeat.interval.ms", 8),
        ("group.consumer.heartbeat.interval.ms", DEFAULT),
    ]
    inherited = entry(result, "consumer.session.timeout.ms")
    assert (inherited.value, inherited.config_source) == ("46000", STATIC)


def test_a_subscription_of_client_metrics(station):
    assert change(station, ConfigType.CLIENT_METRICS, "all", ("interval.ms", SET, "1000"))[0] == 0
    result = describe(station, ConfigType.CLIENT_METRICS, "all")
    assert {each.name: (each.value, each.config_source) for each in result.configs} == {
        "interval.ms": ("1000", 7),
        "match": ("", DEFAULT),
        "metrics": ("", DEFAULT),
    }


# Changing


@pytest.mark.parametrize("version", INCREMENTAL.versions)
def test_changes_of_a_topic_hold_at_once(station, version):
    station.create("t")
    answer = change(station, ConfigType.TOPIC, "t", ("segment.bytes", SET, "1048576"), version=version)
    assert answer == (0, None)
    assert station.table.by_name("t", 0).log.config.segment_bytes == 1048576
    assert change(station, ConfigType.TOPIC, "t", ("segment.bytes", DELETE, None)) == (0, None)
    assert station.table.by_name("t", 0).log.config.segment_bytes == 1 << 30


def test_lists_are_appended_to_and_subtracted_from(station):
    station.create("t")
    assert change(station, ConfigType.TOPIC, "t", ("cleanup.policy", APPEND, "compact")) == (0, None)
    assert station.table.by_name("t", 0).log.config.cleanup_policy == {"delete", "compact"}
    assert change(station, ConfigType.TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete")) == (0, None)
    assert station.table.by_name("t", 0).log.config.cleanup_policy == {"compact"}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([("retention.ms", SET, "soon")], ErrorCode.INVALID_CONFIG),
        ([("no.such.setting", SET, "1")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", SET, "1"), ("retention.ms", SET, "2")], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", 9, "1")], ErrorCode.INVALID_REQUEST),
    ],
)
def test_refused_changes_change_nothing(station, changes, code):
    station.create("t")
    answer = change(station, ConfigType.TOPIC, "t", *changes)
    assert answer[0] == code
    assert answer[1]
    assert station.broker.image.configs.of(ConfigType.TOPIC, "t") == {}


def test_validating_changes_nothing(station):
    station.create("t")
    assert change(station, ConfigType.TOPIC, "t", ("retention.ms", SET, "1"), validate_only=True) == (0, None)
    assert station.broker.image.configs.of(ConfigType.TOPIC, "t") == {}


@pytest.mark.parametrize("version", ALTER.versions)
def test_altering_replaces_the_whole_configuration(station, version):
    station.create("t", retention_ms="1000", segment_bytes="1048576")
    resource = AlterConfigsRequest.AlterConfigsResource(
        resource_type=ConfigType.TOPIC,
        resource_name="t",
        configs=[AlterConfigsRequest.AlterConfigsResource.AlterableConfig(name="retention.ms", value="2000")],
    )
    (result,) = station.ask(ALTER, AlterConfigsRequest(resources=[resource]), version).responses
    assert (result.error_code, result.error_message) == (0, None)
    assert station.broker.image.configs.of(ConfigType.TOPIC, "t") == {"retention.ms": "2000"}


def test_a_refusal_of_the_controller_is_told_for_every_resource(station):
    station.broker.submit = lambda decide, done: done(BrokerError(ErrorCode.NOT_CONTROLLER, "not here"))
    assert change(station, ConfigType.TOPIC, "t", ("a", SET, "b")) == (ErrorCode.NOT_CONTROLLER, "not here")
    resource = AlterConfigsRequest.AlterConfigsResource(resource_type=ConfigType.TOPIC, resource_name="t")
    (result,) = station.ask(ALTER, AlterConfigsRequest(resources=[resource])).responses
    assert result.error_code == ErrorCode.NOT_CONTROLLER


# Loggers


@pytest.fixture
def logger():
    logger = logging.getLogger("ottla.test.loggers")
    yield logger
    logger.setLevel(logging.NOTSET)


def test_loggers_are_described_and_changed(station, logger):
    assert change(station, ConfigType.BROKER_LOGGER, "1", (logger.name, SET, "TRACE")) == (0, None)
    assert logger.level == 5
    found = entry(describe(station, ConfigType.BROKER_LOGGER, "1"), logger.name)
    assert (found.value, found.config_source, found.read_only) == ("TRACE", 6, False)
    assert change(station, ConfigType.BROKER_LOGGER, "1", (logger.name, DELETE, None)) == (0, None)
    assert logger.level == logging.NOTSET
    names = [each.name for each in describe(station, ConfigType.BROKER_LOGGER, "1", ["root"]).configs]
    assert names == ["root"]


@pytest.mark.parametrize(
    ("node", "changed", "code", "message"),
    [
        (
            "2",
            ("ottla.test.loggers", SET, "INFO"),
            ErrorCode.INVALID_REQUEST,
            "Unexpected node id. Expected 1, but received 2",
        ),
        (
            "x",
            ("ottla.test.loggers", SET, "INFO"),
            ErrorCode.INVALID_REQUEST,
            "Node id must be an integer, but it is: x",
        ),
        ("1", ("no.such", SET, "INFO"), ErrorCode.INVALID_CONFIG, "Logger no.such does not exist!"),
        (
            "1",
            ("root", DELETE, None),
            ErrorCode.INVALID_REQUEST,
            "Removing the log level of the root logger is not allowed",
        ),
        ("1", ("root", SET, None), ErrorCode.INVALID_REQUEST, "Null value not supported for : root"),
        (
            "1",
            ("root", APPEND, "INFO"),
            ErrorCode.INVALID_REQUEST,
            "APPEND operation is not allowed for the BROKER_LOGGER resource",
        ),
        (
            "1",
            ("root", SET, "LOUD"),
            ErrorCode.INVALID_CONFIG,
            "Cannot set the log level of root to LOUD as it is not a supported log level. "
            "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN",
        ),
    ],
)
def test_refused_changes_of_loggers(station, logger, node, changed, code, message):
    before = logging.root.level
    assert change(station, ConfigType.BROKER_LOGGER, node, changed) == (code, message)
    assert (logging.root.level, logger.level) == (before, logging.NOTSET)


def test_validating_leaves_loggers_alone(station, logger):
    changed = (logger.name, SET, "ERROR")
    assert change(station, ConfigType.BROKER_LOGGER, "1", changed, validate_only=True) == (0, None)
    assert logger.level == logging.NOTSET


def test_loggers_and_topics_in_one_request_are_answered_in_order(station, logger):
    station.create("t")
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    changed = resource.AlterableConfig
    resources = [
        resource(resource_type=2, resource_name="t", configs=[changed(name="retention.ms", value="5")]),
        resource(resource_type=8, resource_name="1", configs=[changed(name=logger.name, value="ERROR")]),
        resource(resource_type=2, resource_name="u", configs=[changed(name="retention.ms", value="5")]),
    ]
    answers = station.ask(INCREMENTAL, IncrementalAlterConfigsRequest(resources=resources)).responses
    assert [(each.resource_type, each.resource_name, each.error_code) for each in answers] == [
        (2, "t", 0),
        (8, "1", 0),
        (2, "u", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert logger.level == logging.ERROR


# Listing


def test_every_kind_of_resource_is_listed(station):
    station.create("t")
    change(station, ConfigType.GROUP, "g", ("consumer.heartbeat.interval.ms", SET, "6000"))
    change(station, ConfigType.CLIENT_METRICS, "all", ("interval.ms", SET, "1000"))
    response = station.ask(LIST, ListConfigResourcesRequest(), 1)
    found = {(each.resource_type, each.resource_name) for each in response.config_resources}
    assert found == {(2, "t"), (4, "1"), (8, "1"), (16, "all"), (32, "g")}
    response = station.ask(LIST, ListConfigResourcesRequest(resource_types=[2, 32]), 1)
    assert {(each.resource_type, each.resource_name) for each in response.config_resources} == {
        (2, "t"),
        (32, "g"),
    }


def test_the_first_version_knows_client_metrics_alone(station):
    station.create("t")
    change(station, ConfigType.CLIENT_METRICS, "all", ("interval.ms", SET, "1000"))
    response = station.ask(LIST, ListConfigResourcesRequest(), 0)
    assert [each.resource_name for each in response.config_resources] == ["all"]


def test_a_kind_that_has_no_resources_is_refused(station):
    response = station.ask(LIST, ListConfigResourcesRequest(resource_types=[2, 3]), 1)
    assert (response.error_code, response.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])
