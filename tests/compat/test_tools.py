"""Apache Kafka's own command line tools, run against the server as an operator runs them.

A JVM takes a second to start, so each test does one round of what belongs together.
"""

import json
import re
import time
from pathlib import Path

import pytest

from tests.compat.clients import Confluent, Sample
from tests.peers.deadline import eventually
from tests.peers.kafka import tool
from tests.peers.server import Server

pytestmark = pytest.mark.usefixtures("apache_kafka")


def test_kafka_topics(bootstrap: str, topic_name: str) -> None:
    def topics(*arguments: str, check: bool = True) -> str:
        return tool("TopicCommand", "--bootstrap-server", bootstrap, *arguments, check=check)

    new = ["--create", "--topic", topic_name, "--partitions", "3", "--config", "retention.ms=60000"]
    assert f"Created topic {topic_name}" in topics(*new)
    assert "already exists" in topics(*new, check=False)
    described = topics("--describe", "--topic", topic_name)
    assert re.search(
        rf"Topic: {topic_name}\s+TopicId: \S+\s+PartitionCount: 3\s+ReplicationFactor: 1", described
    )
    assert "retention.ms=60000" in described
    assert len(re.findall(r"Partition: \d\s+Leader: 1\s+Replicas: 1\s+Isr: 1", described)) == 3
    topics("--alter", "--topic", topic_name, "--partitions", "5")
    assert "PartitionCount: 5" in topics("--describe", "--topic", topic_name)
    assert topic_name in topics("--list")
    topics("--delete", "--topic", topic_name)
    eventually(lambda: topic_name not in topics("--list").split())


def test_kafka_configs(bootstrap: str, topic: str) -> None:
    def configs(*arguments: str) -> str:
        return tool("kafka.admin.ConfigCommand", "--bootstrap-server", bootstrap, *arguments)

    entity = ["--entity-type", "topics", "--entity-name", topic]
    configs(*entity, "--alter", "--add-config", "segment.bytes=2097152,cleanup.policy=[compact,delete]")
    described = configs(*entity, "--describe")
    assert "segment.bytes=2097152" in described
    assert "cleanup.policy=compact,delete" in described
    assert (
        "synonyms={DYNAMIC_TOPIC_CONFIG:segment.bytes=2097152, DEFAULT_CONFIG:log.segment.bytes=1073741824}"
        in described
    )
    configs(*entity, "--alter", "--delete-config", "segment.bytes")
    everything = configs(*entity, "--describe", "--all")
    assert "segment.bytes=1073741824" in everything
    assert "max.message.bytes=1048588" in everything


def test_kafka_configs_of_brokers(bootstrap: str, topic: str) -> None:
    def configs(*arguments: str) -> str:
        return tool("kafka.admin.ConfigCommand", "--bootstrap-server", bootstrap, *arguments)

    brokers = ["--entity-type", "brokers"]
    configs(*brokers, "--entity-default", "--alter", "--add-config", "log.retention.ms=77777777")
    assert "log.retention.ms=77777777" in configs(*brokers, "--entity-default", "--describe")
    of_topic = configs("--entity-type", "topics", "--entity-name", topic, "--describe", "--all")
    assert re.search(
        r"\bretention\.ms=77777777 .*DYNAMIC_DEFAULT_BROKER_CONFIG:log\.retention\.ms=77777777", of_topic
    )
    configs(*brokers, "--entity-default", "--alter", "--delete-config", "log.retention.ms")
    everything = configs(*brokers, "--entity-name", "1", "--describe", "--all")
    assert "node.id=1 " in everything
    assert "77777777" not in everything


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_console_producer(bootstrap: str, topic: str, codec: str) -> None:
    arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--compression-codec", codec]
    arguments += ["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"]
    tool("ConsoleProducer", *arguments, stdin="a:one\nb:two\nc:three\n")
    seen = Confluent().read(bootstrap, topic, 3)
    assert [(each.key, each.value) for each in seen] == [(b"a", b"one"), (b"b", b"two"), (b"c", b"three")]


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_console_consumer_by_partition(bootstrap: str, topic: str, isolation: str) -> None:
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        samples = [Sample(key=b"k%d" % n, value=b"%s-%d" % (codec.encode(), n)) for n in range(3)]
        Confluent().produce(bootstrap, topic, samples, codec=codec)
    arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--partition", "0", "--offset", "2"]
    arguments += ["--max-messages", "13", "--isolation-level", isolation, "--timeout-ms", "20000"]
    arguments += ["--formatter-property", "print.offset=true", "--formatter-property", "print.key=true"]
    lines = [
        line.split("\t") for line in tool("consumer.ConsoleConsumer", *arguments).splitlines() if "\t" in line
    ]
    assert [line[0] for line in lines] == [f"Offset:{offset}" for offset in range(2, 15)]
    assert lines[0][1:] == ["k2", "none-2"]
    assert lines[-1][1:] == ["k2", "zstd-2"]


def test_producer_perf_test(bootstrap: str, topic: str) -> None:
    arguments = ["--topic", topic, "--num-records", "20000", "--record-size", "200", "--throughput", "-1"]
    printed = tool("ProducerPerformance", *arguments, "--command-property", f"bootstrap.servers={bootstrap}")
    assert "20000 records sent" in printed
    assert "Exception" not in printed
    arguments = ["--bootstrap-server", bootstrap, "--topic", topic]
    assert f"{topic}:0:20000" in tool("GetOffsetShell", *arguments)


def test_get_offsets(bootstrap: str, topic: str) -> None:
    now_ms = int(time.time() * 1000)
    samples = [Sample(value=b"%d" % n, timestamp_ms=now_ms + 100 * n) for n in range(10)]
    Confluent().produce(bootstrap, topic, samples)

    def offset(moment: str) -> str:
        found = tool("GetOffsetShell", "--bootstrap-server", bootstrap, "--topic", topic, "--time", moment)
        return found.strip().removeprefix(f"{topic}:0:")

    assert offset("earliest") == "0"
    assert offset("latest") == "10"
    assert offset("max-timestamp") == "9"
    assert offset(str(now_ms + 250)) == "3"
    assert offset("earliest-local") == "0"
    assert offset("latest-tiered") == ""


def test_log_dirs(bootstrap: str, topic: str, server: Server) -> None:
    Confluent().produce(bootstrap, topic, [Sample(value=b"x" * 5000)])
    printed = tool("LogDirsCommand", "--bootstrap-server", bootstrap, "--describe", "--topic-list", topic)
    [answer] = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    [broker] = answer["brokers"]
    [directory] = broker["logDirs"]
    assert broker["broker"] == 1
    assert directory["logDir"] == str(server.log_dir)
    assert directory["error"] is None
    [partition] = directory["partitions"]
    assert partition["partition"] == f"{topic}-0"
    assert partition["size"] > 5000
    assert partition["offsetLag"] == 0
    assert partition["isFuture"] is False


def test_delete_records(bootstrap: str, topic: str, tmp_path: Path) -> None:
    Confluent().produce(bootstrap, topic, [Sample(value=b"%d" % n) for n in range(10)])
    wish = {"partitions": [{"topic": topic, "partition": 0, "offset": 4}], "version": 1}
    (tmp_path / "wish.json").write_text(json.dumps(wish))
    arguments = ["--bootstrap-server", bootstrap, "--offset-json-file", str(tmp_path / "wish.json")]
    assert f"partition: {topic}-0\tlow_watermark: 4" in tool("DeleteRecordsCommand", *arguments)
    offsets = tool("GetOffsetShell", "--bootstrap-server", bootstrap, "--topic", topic, "--time", "earliest")
    assert f"{topic}:0:4" in offsets


def test_features(bootstrap: str) -> None:
    printed = tool("FeatureCommand", "--bootstrap-server", bootstrap, "describe")
    assert re.search(
        r"Feature: metadata.version\s+SupportedMinVersion: \S+\s+SupportedMaxVersion: \S+\s+Final", printed
    )
    assert re.search(r"Feature: transaction.version\s+SupportedMinVersion: 0", printed)


def test_metadata_quorum(bootstrap: str, server: Server) -> None:
    status = tool("MetadataQuorumCommand", "--bootstrap-server", bootstrap, "describe", "--status")
    assert f"ClusterId:              {server.cluster_id}" in status
    assert re.search(r"LeaderId:\s+1\n", status)
    assert re.search(r"LeaderEpoch:\s+[1-9]\d*\n", status)
    assert re.search(r"HighWatermark:\s+[1-9]\d*\n", status)
    assert re.search(r'CurrentVoters:\s+\[\{"id": 1', status)
    replicas = tool("MetadataQuorumCommand", "--bootstrap-server", bootstrap, "describe", "--replication")
    assert re.search(r"^1\s+\S+\s+\d+\s+0\s+.*Leader", replicas, re.MULTILINE)


def test_broker_api_versions(bootstrap: str) -> None:
    printed = tool("BrokerApiVersionsCommand", "--bootstrap-server", bootstrap)
    for line in (
        "Produce(0): 0 to 13",
        "Fetch(1): 4 to 18",
        "Metadata(3): 0 to 13",
        "CreateTopics(19): 2 to 7",
    ):
        assert line in printed
    assert f"{bootstrap} (id: 1 rack: null isFenced: false) -> (" in printed


def test_cluster(bootstrap: str, server: Server) -> None:
    printed = tool("ClusterTool", "cluster-id", "--bootstrap-server", bootstrap)
    assert f"Cluster ID: {server.cluster_id}" in printed
    endpoints = tool("ClusterTool", "list-endpoints", "--bootstrap-server", bootstrap)
    assert re.search(rf"^1\s+127\.0\.0\.1\s+{server.port}\s", endpoints, re.MULTILINE)


def test_end_to_end_by_verifiable_producer(bootstrap: str, topic: str) -> None:
    """The Java producer with its defaults: idempotent, acks all."""
    arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--max-messages", "1000", "--acks", "-1"]
    printed = tool("VerifiableProducer", *arguments)
    assert '"acked":1000' in printed
    assert len(Confluent().read(bootstrap, topic, 1000)) == 1000
