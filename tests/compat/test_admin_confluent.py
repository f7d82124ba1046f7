"""Topics, partitions, configs, records and the cluster through confluent-kafka's admin client."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import ElectionType, KafkaError, KafkaException, TopicCollection, TopicPartition, Uuid
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from tests.compat.chosen import MakeTopic
from tests.compat.clients import Confluent, Sample
from tests.peers.deadline import eventually
from tests.peers.server import Server


def failure(future: "Future[Any]") -> int:
    """The error code that a request fails with."""
    return failure_of(lambda: future.result(20))


def failure_of(call: Callable[[], object]) -> int:
    """The error code that a call fails with."""
    with pytest.raises(KafkaException) as caught:
        call()
    error = caught.value.args[0]
    assert isinstance(error, KafkaError)
    code: int = error.code()
    return code


def configs(admin: AdminClient, resource: ConfigResource) -> dict[str, ConfigEntry]:
    [future] = admin.describe_configs([resource]).values()
    found: dict[str, ConfigEntry] = future.result(20)
    return found


def delete(admin: AdminClient, name: str) -> None:
    admin.delete_topics([name])[name].result(20)
    eventually(lambda: name not in admin.list_topics(timeout=10).topics)


def topic_config(name: str, **wanted: str) -> ConfigResource:
    changes = [
        ConfigEntry(key.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for key, value in wanted.items()
    ]
    return ConfigResource(ResourceType.TOPIC, name, incremental_configs=changes)


def test_create_list_describe_delete(admin: AdminClient, make_topic: MakeTopic) -> None:
    name = make_topic(partitions=3, retention_ms=123456, cleanup_policy="compact,delete")
    found = admin.list_topics(timeout=10).topics[name]
    assert sorted(found.partitions) == [0, 1, 2]
    assert {(each.leader, tuple(each.replicas), tuple(each.isrs)) for each in found.partitions.values()} == {
        (1, (1,), (1,))
    }
    described = admin.describe_topics(TopicCollection([name]))[name].result(20)
    assert described.name == name
    assert not described.is_internal
    assert [(each.id, each.leader.id) for each in described.partitions] == [(0, 1), (1, 1), (2, 1)]
    zero = Uuid(0, 0)
    assert described.topic_id != zero
    delete(admin, name)
    gone = admin.describe_topics(TopicCollection([name]))[name]
    assert failure(gone) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_a_topic_made_anew_has_another_id_and_no_records(
    admin: AdminClient, bootstrap: str, make_topic: MakeTopic
) -> None:
    ids = []
    for value in (b"first life", b"second life"):
        name = make_topic()
        ids.append(str(admin.describe_topics(TopicCollection([name]))[name].result(20).topic_id))
        Confluent().produce(bootstrap, name, [Sample(value=value)])
        assert [each.value for each in Confluent().read(bootstrap, name, 1)] == [value]
        delete(admin, name)
    assert ids[0] != ids[1]


@pytest.mark.parametrize(
    ("new", "code"),
    [
        (NewTopic("bad/name", 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("..", 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("x" * 250, 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("no-partitions", 0, 1), KafkaError.INVALID_PARTITIONS),
        (NewTopic("too-many-replicas", 1, 3), KafkaError.INVALID_REPLICATION_FACTOR),
        (NewTopic("bad-value", 1, 1, config={"retention.ms": "soon"}), KafkaError.INVALID_CONFIG),
        (NewTopic("bad-key", 1, 1, config={"no.such.setting": "1"}), KafkaError.INVALID_CONFIG),
        (NewTopic("bad-policy", 1, 1, config={"cleanup.policy": "forget"}), KafkaError.INVALID_CONFIG),
        (NewTopic("stranger", 1, replica_assignment=[[7]]), KafkaError.INVALID_REPLICA_ASSIGNMENT),
    ],
    ids=lambda value: getattr(value, "topic", None) and value.topic[:20],
)
def test_a_topic_that_cannot_be_is_refused(admin: AdminClient, new: NewTopic, code: int) -> None:
    assert failure(admin.create_topics([new])[new.topic]) == code
    assert new.topic not in admin.list_topics(timeout=10).topics


def test_existing_topic_is_refused(admin: AdminClient, topic: str) -> None:
    again = admin.create_topics([NewTopic(topic, 1, 1)])[topic]
    assert failure(again) == KafkaError.TOPIC_ALREADY_EXISTS


def test_names_that_differ_only_in_dot_and_underscore_collide(
    admin: AdminClient, make_topic: MakeTopic
) -> None:
    make_topic(suffix=".a")
    with pytest.raises(KafkaException) as caught:
        make_topic(suffix="_a")
    assert caught.value.args[0].code() == KafkaError.TOPIC_EXCEPTION


def test_validate_only_makes_nothing(admin: AdminClient, topic_name: str) -> None:
    admin.create_topics([NewTopic(topic_name, 2, 1)], validate_only=True)[topic_name].result(20)
    assert topic_name not in admin.list_topics(timeout=10).topics


def test_defaults_of_the_broker_are_used(admin: AdminClient, topic_name: str) -> None:
    admin.create_topics([NewTopic(topic_name, -1, -1)])[topic_name].result(20)
    assert len(admin.list_topics(timeout=10).topics[topic_name].partitions) == 1


def test_unknown_topic_is_not_deleted(admin: AdminClient, topic_name: str) -> None:
    future = admin.delete_topics([topic_name])[topic_name]
    assert failure(future) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_partitions_are_added_and_never_taken(admin: AdminClient, bootstrap: str, topic: str) -> None:
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(20)
    eventually(lambda: len(admin.list_topics(timeout=10).topics[topic].partitions) == 3)
    Confluent().produce(bootstrap, topic, [Sample(value=b"to the new one")], partition=2)
    assert len(Confluent().read(bootstrap, topic, 1, partition=2)) == 1
    for count in (3, 2):
        assert (
            failure(admin.create_partitions([NewPartitions(topic, count)])[topic])
            == KafkaError.INVALID_PARTITIONS
        )
    future = admin.create_partitions([NewPartitions(topic + "-none", 2)])[topic + "-none"]
    assert failure(future) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_configs_of_a_topic(admin: AdminClient, make_topic: MakeTopic) -> None:
    name = make_topic(retention_ms=1000)
    resource = ConfigResource(ResourceType.TOPIC, name)
    found = configs(admin, resource)
    assert found["retention.ms"].value == "1000"
    assert found["retention.ms"].source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    assert found["segment.bytes"].value == "1073741824"
    assert found["segment.bytes"].source == ConfigSource.DEFAULT_CONFIG.value
    assert found["cleanup.policy"].value == "delete"
    assert found["max.message.bytes"].value == "1048588"
    assert not any(entry.is_sensitive or entry.is_read_only for entry in found.values())
    change = topic_config(name, segment_bytes="2097152", cleanup_policy="compact")
    admin.incremental_alter_configs([change])[change].result(20)

    def changed() -> bool:
        now = configs(admin, resource)
        values = now["segment.bytes"].value, now["cleanup.policy"].value, now["retention.ms"].value
        return values == ("2097152", "compact", "1000")

    eventually(changed)


def test_configs_appended_subtracted_deleted(admin: AdminClient, topic: str) -> None:
    def alter(kind: AlterConfigOpType, name: str, value: str | None) -> None:
        entry = ConfigEntry(name, value, incremental_operation=kind)
        change = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        admin.incremental_alter_configs([change])[change].result(20)

    def value(name: str) -> str | None:
        found = configs(admin, ConfigResource(ResourceType.TOPIC, topic))[name].value
        return None if found is None else str(found)

    alter(AlterConfigOpType.APPEND, "cleanup.policy", "compact")
    eventually(lambda: value("cleanup.policy") == "delete,compact")
    alter(AlterConfigOpType.SUBTRACT, "cleanup.policy", "delete")
    eventually(lambda: value("cleanup.policy") == "compact")
    alter(AlterConfigOpType.DELETE, "cleanup.policy", None)
    eventually(lambda: value("cleanup.policy") == "delete")


def test_alter_configs_replaces_all(admin: AdminClient, make_topic: MakeTopic) -> None:
    name = make_topic(retention_ms=1000, segment_bytes=2097152)
    change = ConfigResource(ResourceType.TOPIC, name, set_config={"retention.ms": "2000"})
    with pytest.warns(DeprecationWarning, match="incremental_alter_configs"):
        futures = admin.alter_configs([change])
    futures[change].result(20)
    resource = ConfigResource(ResourceType.TOPIC, name)
    eventually(lambda: configs(admin, resource)["segment.bytes"].value == "1073741824")
    assert configs(admin, resource)["retention.ms"].value == "2000"


def test_bad_configs_are_refused(admin: AdminClient, topic: str) -> None:
    for change in (topic_config(topic, retention_ms="soon"), topic_config(topic, no_such_setting="1")):
        future = admin.incremental_alter_configs([change])[change]
        assert failure(future) == KafkaError.INVALID_CONFIG
    change = topic_config(topic + "-none", retention_ms="1")
    future = admin.incremental_alter_configs([change])[change]
    assert failure(future) == KafkaError.UNKNOWN_TOPIC_OR_PART
    stranger = ConfigResource(ResourceType.TOPIC, topic + "-none")
    assert failure_of(lambda: configs(admin, stranger)) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_configs_of_the_broker(admin: AdminClient, server: Server) -> None:
    resource = ConfigResource(ResourceType.BROKER, "1")
    found = configs(admin, resource)
    assert found["node.id"].value == "1"
    assert found["log.dirs"].value == str(server.log_dir)
    assert found["log.dirs"].source == ConfigSource.STATIC_BROKER_CONFIG.value
    assert found["log.dirs"].is_read_only
    assert found["num.partitions"].value == "1"
    assert found["message.max.bytes"].value == "1048588"
    assert found["message.max.bytes"].source == ConfigSource.DEFAULT_CONFIG.value
    assert not found["message.max.bytes"].is_read_only


def test_max_message_bytes_takes_effect_at_once(admin: AdminClient, bootstrap: str, topic: str) -> None:
    big = [Sample(value=b"x" * 50_000)]
    Confluent().produce(bootstrap, topic, big)
    change = topic_config(topic, max_message_bytes="10000")
    admin.incremental_alter_configs([change])[change].result(20)

    resource = ConfigResource(ResourceType.TOPIC, topic)
    eventually(lambda: configs(admin, resource)["max.message.bytes"].value == "10000")
    code = failure_of(lambda: Confluent().produce(bootstrap, topic, big))
    assert code == KafkaError.MSG_SIZE_TOO_LARGE


def test_delete_records(admin: AdminClient, bootstrap: str, topic: str) -> None:
    Confluent().produce(bootstrap, topic, [Sample(value=b"%d" % n) for n in range(10)])
    [future] = admin.delete_records([TopicPartition(topic, 0, 4)]).values()
    assert future.result(20).low_watermark == 4
    assert [each.offset for each in Confluent().read(bootstrap, topic, 6, start_offset=4)] == list(
        range(4, 10)
    )
    with pytest.raises(KafkaException):
        Confluent().read(bootstrap, topic, 1, start_offset=3)
    [future] = admin.delete_records([TopicPartition(topic, 0, 11)]).values()
    assert failure(future) == KafkaError.OFFSET_OUT_OF_RANGE
    [future] = admin.delete_records([TopicPartition(topic, 0, -1)]).values()
    assert future.result(20).low_watermark == 10


def test_records_of_a_compacted_topic_are_not_deleted(
    admin: AdminClient, bootstrap: str, make_topic: MakeTopic
) -> None:
    name = make_topic(cleanup_policy="compact")
    Confluent().produce(bootstrap, name, [Sample(key=b"k", value=b"v")])
    [future] = admin.delete_records([TopicPartition(name, 0, 1)]).values()
    assert failure(future) == KafkaError.POLICY_VIOLATION


def test_a_compacted_topic_wants_keys(bootstrap: str, make_topic: MakeTopic) -> None:
    name = make_topic(cleanup_policy="compact")
    no_key = [Sample(value=b"no key")]
    assert failure_of(lambda: Confluent().produce(bootstrap, name, no_key)) == KafkaError.INVALID_RECORD


def test_cluster(admin: AdminClient, server: Server) -> None:
    found = admin.describe_cluster().result(20)
    assert found.cluster_id == server.cluster_id
    assert [(node.id, node.host, node.port) for node in found.nodes] == [(1, "127.0.0.1", server.port)]
    assert found.controller.id == 1


def test_there_is_nothing_to_elect(admin: AdminClient, topic: str) -> None:
    place = TopicPartition(topic, 0)
    found = admin.elect_leaders(ElectionType.PREFERRED, [place]).result(20)
    error = found[place]
    assert error is not None
    assert error.code() == KafkaError.ELECTION_NOT_NEEDED


def test_a_topic_is_made_on_first_use(bootstrap: str, topic_name: str) -> None:
    Confluent().produce(bootstrap, topic_name, [Sample(value=b"first")])
    assert [each.value for each in Confluent().read(bootstrap, topic_name, 1)] == [b"first"]
