"""What kafka-python's admin client asks of a broker, which is most of what there is to ask."""

import uuid
from collections.abc import Iterator

import kafka.errors
import pytest
from kafka import TopicPartition
from kafka.admin import AlterConfigOp, ConfigResource, KafkaAdminClient
from kafka.structs import TopicPartitionReplica

from tests.compat.chosen import MakeTopic
from tests.compat.clients import Confluent, Sample
from tests.peers.deadline import eventually
from tests.peers.server import Server


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[KafkaAdminClient]:
    admin = KafkaAdminClient(bootstrap_servers=server.bootstrap)
    yield admin
    admin.close()


def modified(client: KafkaAdminClient, topic: str) -> dict[str, str]:
    found = client.describe_configs([ConfigResource("topic", topic)])["topic"][topic]
    return {name: entry["value"] for name, entry in found.items()}


def test_create_describe_delete_by_id(client: KafkaAdminClient, topic_name: str) -> None:
    answer = client.create_topics({topic_name: {"num_partitions": 2, "configs": {"retention.ms": "5000"}}})
    [made] = answer["topics"]
    assert (made["name"], made["num_partitions"], made["replication_factor"]) == (topic_name, 2, 1)
    assert made["configs"]["retention.ms"]["value"] == "5000"
    assert made["configs"]["segment.bytes"]["value"] == "1073741824"
    client.wait_for_topics([topic_name])
    topic_id = uuid.UUID(made["topic_id"])
    [by_id] = client.describe_topics([topic_id])
    assert by_id["name"] == topic_name
    assert by_id["topic_id"] == str(topic_id)
    assert [each["leader_id"] for each in by_id["partitions"]] == [1, 1]
    assert [each["leader_epoch"] for each in by_id["partitions"]] == [0, 0]
    client.delete_topics([topic_id])
    eventually(lambda: topic_name not in client.list_topics())


def test_describe_topic_partitions_in_pages(client: KafkaAdminClient, make_topic: MakeTopic) -> None:
    name = make_topic(partitions=5)
    first = client.describe_topic_partitions([name], response_partition_limit=2)
    assert [each["partition_index"] for each in first["topics"][0]["partitions"]] == [0, 1]
    assert first["next_cursor"] == {"topic_name": name, "partition_index": 2}
    rest = client.describe_topic_partitions([name], cursor=first["next_cursor"])
    assert [each["partition_index"] for each in rest["topics"][0]["partitions"]] == [2, 3, 4]
    assert rest["next_cursor"] is None
    [unknown] = client.describe_topic_partitions([name + "-none"])["topics"]
    assert unknown["error_code"] == kafka.errors.UnknownTopicOrPartitionError.errno


def test_create_partitions(client: KafkaAdminClient, topic: str) -> None:
    client.create_partitions({topic: 2}, validate_only=True)
    assert len(client.describe_topics([topic])[0]["partitions"]) == 1
    client.create_partitions({topic: {"count": 3, "assignments": [[1], [1]]}})
    eventually(lambda: len(client.describe_topics([topic])[0]["partitions"]) == 3)
    with pytest.raises(kafka.errors.KafkaError, match=r"INVALID_REPLICA_ASSIGNMENT|Error 39"):
        client.create_partitions({topic: {"count": 5, "assignments": [[1]]}})


@pytest.mark.parametrize("incremental", [True, False])
def test_configs(client: KafkaAdminClient, topic: str, incremental: bool) -> None:
    change = ConfigResource("topic", topic, {"retention.ms": "1000", "compression.type": "zstd"})
    answer = client.alter_configs([change], incremental=incremental)
    assert answer == {"topic": {topic: "OK"}}
    eventually(
        lambda: (
            modified(client, topic).items() >= {"retention.ms": "1000", "compression.type": "zstd"}.items()
        )
    )
    client.reset_configs([ConfigResource("topic", topic, ["retention.ms"])], incremental=incremental)
    eventually(lambda: "retention.ms" not in modified(client, topic))
    assert modified(client, topic)["compression.type"] == "zstd"


def test_configs_validated_only(client: KafkaAdminClient, topic: str) -> None:
    fine = ConfigResource("topic", topic, {"retention.ms": "1000"})
    assert client.alter_configs([fine], validate_only=True) == {"topic": {topic: "OK"}}
    bad = ConfigResource("topic", topic, {"retention.ms": "never"})
    assert "InvalidConfigurationError" in client.alter_configs([bad], validate_only=True)["topic"][topic]
    not_a_list = ConfigResource("topic", topic, {"retention.ms": (AlterConfigOp.APPEND, "5")})
    assert client.alter_configs([not_a_list])["topic"][topic] != "OK"
    assert "retention.ms" not in modified(client, topic)


def test_configs_with_synonyms_and_types(client: KafkaAdminClient, make_topic: MakeTopic) -> None:
    name = make_topic(retention_ms=1234)
    wanted = ConfigResource(
        "topic", name, ["retention.ms", "cleanup.policy", "preallocate", "max.message.bytes"]
    )
    found = client.describe_configs([wanted], include_synonyms=True, config_filter="all")["topic"][name]
    assert sorted(found) == ["cleanup.policy", "max.message.bytes", "preallocate", "retention.ms"]
    retention = found["retention.ms"]
    assert retention["config_type"] == "LONG"
    assert retention["value"] == "1234"
    synonyms = [(each["name"], each["value"], each["source"]) for each in retention["synonyms"]]
    assert synonyms == [("retention.ms", "1234", "DYNAMIC_TOPIC_CONFIG")]
    assert found["cleanup.policy"]["config_type"] == "LIST"
    assert found["preallocate"]["config_type"] == "BOOLEAN"
    assert found["max.message.bytes"]["config_type"] == "INT"
    [synonym] = found["max.message.bytes"]["synonyms"]
    assert synonym == {"name": "message.max.bytes", "value": "1048588", "source": "DEFAULT_CONFIG"}


def test_configs_of_the_broker_changed_at_run_time(client: KafkaAdminClient) -> None:
    def value() -> tuple[str, str]:
        wanted = ConfigResource("broker", "1", ["log.cleaner.threads"])
        [entry] = client.describe_configs([wanted], config_filter="all")["broker"]["1"].values()
        return entry["value"], entry["config_source"]

    assert value() == ("1", "DEFAULT_CONFIG")
    answer = client.alter_configs([ConfigResource("broker", "1", {"log.cleaner.threads": "2"})])
    assert answer == {"broker": {"1": "OK"}}
    eventually(lambda: value() == ("2", "DYNAMIC_BROKER_CONFIG"))
    client.reset_configs([ConfigResource("broker", "1", ["log.cleaner.threads"])])
    eventually(lambda: value() == ("1", "DEFAULT_CONFIG"))
    fixed = ConfigResource("broker", "1", {"log.dirs": "/elsewhere"})
    assert client.alter_configs([fixed], raise_on_unknown=False)["broker"]["1"] != "OK"


def test_resources_that_have_configs(client: KafkaAdminClient, topic: str) -> None:
    found = client.list_config_resources(["TOPIC", "BROKER"])
    assert topic in found["topic"]
    assert found["broker"] == ["1"]


def test_delete_records(client: KafkaAdminClient, bootstrap: str, topic: str) -> None:
    Confluent().produce(bootstrap, topic, [Sample(value=b"%d" % n) for n in range(5)])
    place = TopicPartition(topic, 0)
    assert client.delete_records({place: 3})[place]["low_watermark"] == 3
    with pytest.raises(kafka.errors.OffsetOutOfRangeError):
        client.delete_records({place: 6})


def test_cluster_and_its_features(client: KafkaAdminClient, server: Server) -> None:
    cluster = client.describe_cluster()
    assert cluster["cluster_id"] == server.cluster_id
    assert cluster["controller_id"] == 1
    assert [(each["broker_id"], each["host"], each["port"]) for each in cluster["brokers"]] == [
        (1, "127.0.0.1", server.port)
    ]
    features = client.describe_features()
    level, _ = features["metadata.version"]["finalized"]
    low, high = features["metadata.version"]["supported"]
    assert low <= level <= high
    assert features["metadata.version"]["finalized_epoch"] >= 0


def test_features_are_checked_before_they_are_changed(client: KafkaAdminClient) -> None:
    level = client.describe_features()["metadata.version"]["finalized"][1]
    with pytest.raises(kafka.errors.KafkaError):
        client.update_features({"metadata.version": level + 1000}, validate_only=True)
    with pytest.raises(kafka.errors.KafkaError):
        client.update_features({"no.such.feature": 1}, validate_only=True)
    assert client.describe_features()["metadata.version"]["finalized"][1] == level


def test_quorum(client: KafkaAdminClient) -> None:
    [topic] = client.describe_metadata_quorum()["topics"]
    [partition] = topic["partitions"]
    assert topic["topic_name"] == "__cluster_metadata"
    assert partition["error"] is None
    assert partition["leader_id"] == 1
    assert partition["leader_epoch"] >= 1
    [voter] = partition["current_voters"]
    assert voter["replica_id"] == 1
    assert voter["log_end_offset"] >= partition["high_watermark"] > 0


def test_log_directories(client: KafkaAdminClient, server: Server, bootstrap: str, topic: str) -> None:
    Confluent().produce(bootstrap, topic, [Sample(value=b"x" * 1000)])
    [answer] = client.describe_log_dirs({topic: [0]})
    [directory] = answer["log_dirs"]
    assert directory["log_dir"] == str(server.log_dir)
    assert directory["error_code"] == 0
    assert directory["total_bytes"] > directory["usable_bytes"] > 0
    [found] = [each for each in directory["topics"] if each["name"] == topic]
    [partition] = found["partitions"]
    assert partition["partition_size"] > 1000
    assert partition["offset_lag"] == 0
    assert partition["is_future_key"] is False


def test_a_replica_stays_where_it_is(client: KafkaAdminClient, server: Server, topic: str) -> None:
    replica = TopicPartitionReplica(topic, 0, 1)
    assert client.alter_replica_log_dirs({replica: str(server.log_dir)})[replica] is kafka.errors.NoError
    elsewhere = client.alter_replica_log_dirs({replica: "/no/such/directory"})[replica]
    assert elsewhere is kafka.errors.LogDirNotFoundError


def test_producers(client: KafkaAdminClient, bootstrap: str, topic: str) -> None:
    place = TopicPartition(topic, 0)
    assert client.describe_producers([place])[place].active_producers == []
    Confluent().produce(bootstrap, topic, [Sample(value=b"x")] * 7, idempotent=True)
    [producer] = client.describe_producers([place])[place].active_producers
    assert producer.producer_epoch == 0
    assert producer.last_sequence == 6
    assert producer.last_timestamp > 0
    assert producer.current_transaction_start_offset == -1


def test_there_is_nothing_to_elect(client: KafkaAdminClient, topic: str) -> None:
    answer = client.elect_leaders(0, {topic: [0]}, raise_errors=False).to_dict()
    [found] = answer["replica_election_results"]
    [partition] = found["partition_result"]
    assert partition["error_code"] == kafka.errors.ElectionNotNeededError.errno
