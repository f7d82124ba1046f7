"""From properties to typed settings: what is taken, what is refused, and in which words."""

import pytest

from ottla.metadata.settings.error import SettingError
from ottla.node.dev import dev_properties
from ottla.node.endpoint import Endpoint, SecurityProtocol
from ottla.node.properties import parse_properties
from ottla.node.settings import Settings

BASE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
}

# The parts that matter of the file that Apache Kafka ships.
SHIPPED = b"""
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def refused(**changes: str | None) -> SettingError:
    properties = dict(BASE)
    for name, text in changes.items():
        if text is None:
            del properties[name.replace("_", ".")]
        else:
            properties[name.replace("_", ".")] = text
    with pytest.raises(SettingError) as error:
        Settings.from_properties(properties)
    return error.value


def test_the_file_that_kafka_ships() -> None:
    settings = Settings.from_properties(parse_properties(SHIPPED))
    assert settings.node_id == 1
    assert settings["broker.id"] == 1
    assert settings.is_broker
    assert settings.is_controller
    assert settings.broker_listeners == (Endpoint("PLAINTEXT", SecurityProtocol.PLAINTEXT, "", 9092),)
    assert [str(each) for each in settings.controller_listeners] == ["CONTROLLER://:9093"]
    assert [str(each) for each in settings.advertised] == ["PLAINTEXT://localhost:9092"]
    assert [str(each) for each in settings.advertised_controllers] == ["CONTROLLER://localhost:9093"]
    assert settings.log_dirs == ("/tmp/kraft-combined-logs",)
    assert settings.metadata_log_dir == "/tmp/kraft-combined-logs"
    assert settings.bootstrap_servers == (("localhost", 9093),)
    assert settings.inter_broker_name == "PLAINTEXT"
    assert settings.warnings == ("num.recovery.threads.per.data.dir=1 is not honoured yet and has no effect",)


def test_typed_access() -> None:
    settings = Settings.from_properties(
        BASE | {"log.retention.minutes": "5", "log.cleanup.policy": "compact, delete"}
    )
    assert settings["log.retention.minutes"] == 5
    assert settings["log.segment.bytes"] == 1_073_741_824
    assert settings["log.cleanup.policy"] == ("compact", "delete")
    assert settings["ottla.flush"] == "ack"
    assert settings["auto.create.topics.enable"] is True
    with pytest.raises(KeyError):
        settings["log.segment.byte"]


def test_directories() -> None:
    settings = Settings.from_properties(BASE | {"log.dirs": "/b/,/a", "metadata.log.dir": "/m"})
    assert settings.log_dirs == ("/b", "/a")
    assert settings.metadata_log_dir == "/m"
    assert settings.directories == ("/a", "/b", "/m")
    assert Settings.from_properties(BASE).log_dirs == ("/tmp/kafka-logs",)
    assert Settings.from_properties(BASE | {"log.dir": "/d"}).metadata_log_dir == "/d"


def test_the_older_name_of_the_node_id() -> None:
    properties = dict(BASE)
    properties["broker.id"] = properties.pop("node.id")
    assert Settings.from_properties(properties).node_id == 1
    assert "same value" in str(refused(broker_id="2"))


def test_an_empty_host_is_left_to_the_node() -> None:
    settings = Settings.from_properties(BASE | {"listeners": "PLAINTEXT://:9092,CONTROLLER://0.0.0.0:9093"})
    assert [each.host for each in settings.advertised] == [""]
    assert [each.host for each in settings.advertised_controllers] == [""]
    assert [each.host for each in settings.controller_listeners] == ["0.0.0.0"]


def test_voters() -> None:
    properties = BASE | {"controller.quorum.voters": "1@localhost:9093"}
    del properties["controller.quorum.bootstrap.servers"]
    assert Settings.from_properties(properties).voters == {1: ("localhost", 9093)}


def test_an_unknown_name_gets_a_hint() -> None:
    error = refused(log_retention_hour="1")
    assert str(error) == "Unknown setting log.retention.hour=1"
    assert error.hint == "did you mean log.retention.hours?"
    assert error.allowed
    assert refused(zookeeper_connect="x").hint


def test_a_bad_value_says_what_is_allowed() -> None:
    error = refused(num_partitions="0")
    assert str(error) == "Invalid value 0 for configuration num.partitions: Value must be at least 1"
    assert error.allowed == "[1,...]"
    assert "true or false" in refused(auto_create_topics_enable="maybe").allowed
    assert refused(ottla_flush="never").allowed == "[ack, os]"


def test_what_is_missing() -> None:
    assert (
        str(refused(node_id=None)) == 'Missing required configuration "node.id" which has no default value.'
    )
    assert refused(process_roles=None).hint == "process.roles=broker,controller"
    assert "controllers are" in str(refused(controller_quorum_bootstrap_servers=None))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"listeners": "PLAINTEXT:9092,CONTROLLER://:9093"}, "not a listener"),
        ({"listeners": "PLAINTEXT://:99999,CONTROLLER://:9093"}, "not a listener"),
        (
            {"listeners": "INSIDE://:9092,CONTROLLER://:9093"},
            "No security protocol defined for listener INSIDE",
        ),
        ({"listeners": "PLAINTEXT://:9092,CONTROLLER://:9092"}, "different port"),
        ({"listeners": "PLAINTEXT://a:1,PLAINTEXT://b:2,CONTROLLER://:9093"}, "different name"),
        ({"listeners": "PLAINTEXT://:9092"}, "not in listeners"),
        ({"listeners": "CONTROLLER://:9093"}, "at least one broker advertised listener"),
        ({"advertised_listeners": "PLAINTEXT://0.0.0.0:9092"}, "every interface"),
        ({"listeners": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://:9093"}, "every interface"),
        ({"advertised_listeners": "SSL://a:9092"}, "not advertised"),
        ({"inter_broker_listener_name": "OTHER"}, "not advertised"),
        ({"listener_security_protocol_map": "PLAINTEXT:SECRET"}, "security protocol"),
        ({"controller_quorum_voters": "2@localhost:9093"}, "not among controller.quorum.voters"),
        ({"log_roll_ms": "0"}, "log.roll.ms must be greater"),
        ({"log_retention_ms": "0"}, "unlimited"),
        ({"log_cleaner_min_compaction_lag_ms": "5", "log_cleaner_max_compaction_lag_ms": "4"}, "conflict"),
        ({"queued_max_request_bytes": "5"}, "larger or equal"),
        ({"group_coordinator_rebalance_protocols": "consumer"}, "Disabling the 'classic' protocol"),
        ({"group_streams_heartbeat_interval_ms": "16000"}, "must be less than or equal to group.streams.max"),
        ({"group_streams_session_timeout_ms": "9"}, "must be greater than or equal to group.streams.min"),
        ({"group_streams_num_standby_replicas": "3"}, "less than or equal to group.streams.max.standby"),
        ({"group_share_max_assignment_interval_ms": "0"}, "less than or equal to group.share.max.assignment"),
        ({"group_consumer_min_heartbeat_interval_ms": "16000"}, "max.heartbeat.interval.ms must be greater"),
        (
            {
                "group_streams_min_session_timeout_ms": "1000",
                "group_streams_session_timeout_ms": "5000",
            },
            "group.streams.heartbeat.interval.ms must be less than group.streams.session.timeout.ms",
        ),
        ({"ottla_metrics_listener": "8080"}, "not an address"),
        ({"leader_replication_throttled_rate": "5"}, "cannot be set in a properties file"),
    ],
)
def test_refused_together(changes: dict[str, str], words: str) -> None:
    assert words in str(refused(**changes))


def test_no_listener_is_served_less_safely_than_asked() -> None:
    error = refused(
        listeners="SSL://:9092,CONTROLLER://:9093",
        inter_broker_listener_name="SSL",
        listener_security_protocol_map="SSL:SSL,CONTROLLER:PLAINTEXT",
    )
    assert "does not speak SSL yet" in str(error)


def test_warnings_are_for_what_is_set_and_not_obeyed() -> None:
    settings = Settings.from_properties(
        BASE
        | {
            "num.io.threads": "16",
            "num.network.threads": "3",
            "ssl.key.password": "hunter2",
            "listener.name.internal.ssl.client.auth": "required",
            "log.segment.bytes": "2000000",
        }
    )
    assert settings.warnings == (
        "num.io.threads=16 is not honoured yet and has no effect",
        "ssl.key.password=[hidden] is not honoured yet and has no effect",
        "listener.name.internal.ssl.client.auth=required is not honoured yet and has no effect",
    )


def test_dev_needs_nothing_and_warns_of_nothing() -> None:
    settings = Settings.from_properties(dev_properties())
    assert settings.warnings == ()
    assert [str(each) for each in settings.listeners] == [
        "PLAINTEXT://127.0.0.1:9092",
        "CONTROLLER://127.0.0.1:9093",
    ]
    assert settings.log_dirs == ("ottla-data",)
    assert settings.metrics_address == ("127.0.0.1", 9404)
    assert settings["auto.create.topics.enable"]
    assert settings["ottla.flush"] == "ack"
    free = Settings.from_properties(dev_properties(port=0, metrics_port=0, flush="os"))
    assert [each.port for each in free.listeners] == [0, 0]
    assert free["ottla.flush"] == "os"


def test_a_raised_session_that_another_setting_cuts_short_draws_a_warning() -> None:
    raised = {**BASE, "broker.session.timeout.ms": "30000"}
    assert Settings.from_properties(raised).warnings == ()
    (warning,) = Settings.from_properties({**raised, "ottla.broker.silence.ms": "1000"}).warnings
    assert (
        warning
        == "ottla.broker.silence.ms=1000 ends a broker's session before broker.session.timeout.ms=30000 does"
    )
