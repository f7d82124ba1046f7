"""Kafka's files both ways: what one server wrote, the other serves, and Kafka's own tools find nothing wrong.

Each succession goes there and back: the first server fills a directory, the second takes it over, serves
all of it, adds to it, and gives it back.
"""

from pathlib import Path

import pytest
from kafka.admin import ConfigResource, KafkaAdminClient

from tests.compat import estate
from tests.compat.chosen import CHOSEN, SERVERS
from tests.compat.clients import Confluent, Sample
from tests.compat.estate import Estate
from tests.peers.kafka import tool
from tests.peers.server import Server

pytestmark = pytest.mark.usefixtures("apache_kafka")

# Where Kafka stands in for Ottla, it succeeds itself, which shows that the test asks nothing impossible.
SUCCESSIONS = [(CHOSEN, "kafka"), ("kafka", CHOSEN)] if CHOSEN != "kafka" else [("kafka", "kafka")]
PARTITIONS = [
    (name, n) for name, topic in estate.TOPICS.items() for n in range(topic.get("num_partitions", 1))
]


def change(server: Server) -> None:
    """What a new owner does: writes to every topic, makes one, drops one, changes a config."""
    for topic, partition in PARTITIONS:
        samples = [Sample(key=b"heir", value=b"%d" % n) for n in range(10)]
        Confluent().produce(
            server.bootstrap, topic, samples, partition=partition, idempotent=topic == "idempotent"
        )
    admin = KafkaAdminClient(bootstrap_servers=server.bootstrap)
    try:
        admin.create_topics({"made-by-heir": {"num_partitions": 2}})
        admin.wait_for_topics(["made-by-heir"])
        admin.delete_topics(["gzip"])
        admin.alter_configs([ConfigResource("topic", "empty", {"retention.ms": "4242"})])
    finally:
        admin.close()
    Confluent().produce(server.bootstrap, "made-by-heir", [Sample(value=b"new")], codec="zstd")


@pytest.mark.long
@pytest.mark.parametrize("ending", ["stopped", "killed"])
@pytest.mark.parametrize(("first", "second"), SUCCESSIONS)
def test_succession(first: str, second: str, ending: str, tmp_path: Path) -> None:
    old = SERVERS[first](tmp_path, estate.SETTINGS)
    with old:
        estate.fill(old)
        left = Estate.take(old)
        if ending == "killed":
            old.kill()
    # The heir's writes begin new segments; without its cleaner, what was compacted stays to be compared.
    heir = SERVERS[second](tmp_path, {"log.cleaner.enable": "false"}, like=old)
    with heir:
        assert left.differences(Estate.take(heir)) == []
        ids_before = {producer[0] for each in left.producers.values() for producer in each}
        change(heir)
        changed = Estate.take(heir)
        ids_new = {producer[0] for producer in changed.producers["idempotent", 0]} - ids_before
        assert len(ids_new) == 1, "the heir must not hand out a producer id that was used before"
    assert "gzip" not in changed.topics
    assert "made-by-heir" in changed.topics
    back = SERVERS[first](tmp_path, like=heir)
    with back:
        assert changed.differences(Estate.take(back)) == []


def files(directory: Path, *endings: str) -> list[str]:
    """The files of all topics and of the metadata log that end so."""
    return sorted(str(path) for path in directory.glob("*-*/*") if path.name.endswith(endings))


def test_dump_log(server_class: type[Server], tmp_path: Path) -> None:
    """Deep iteration, index sanity and index verification of kafka-dump-log, on every file of the estate."""
    server = server_class(tmp_path, estate.SETTINGS)
    with server:
        estate.fill(server)
        left = Estate.take(server)
    check_logs(server, left)
    check_indexes(server)
    snapshots = files(server.log_dir, ".snapshot")
    printed = tool("DumpLogSegments", "--files", ",".join(snapshots))
    assert "producerId:" in printed
    assert "Exception" not in printed


def check_logs(server: Server, left: Estate) -> None:
    topics = [path for path in files(server.log_dir, ".log") if "__cluster_metadata" not in path]
    printed = tool("DumpLogSegments", "--deep-iteration", "--files", ",".join(topics))
    assert "isvalid: true" in printed
    assert "isvalid: false" not in printed
    assert "Exception" not in printed
    kept = sum(len(records) for records in left.records.values())
    dumped = sum(line.startswith("| offset:") for line in printed.splitlines())
    assert dumped >= kept, "records before the first offset may still be in the file, but none may be missing"
    metadata = [path for path in files(server.log_dir, ".log") if "__cluster_metadata" in path]
    printed = tool("DumpLogSegments", "--cluster-metadata-decoder", "--files", ",".join(metadata))
    assert '"type":"TOPIC_RECORD"' in printed
    assert '"name":"compacted"' in printed
    assert "isvalid: false" not in printed
    assert "Exception" not in printed
    assert "ERROR" not in printed


def check_indexes(server: Server) -> None:
    indexes = files(server.log_dir, ".index", ".timeindex")
    assert len(indexes) > 2 * len(PARTITIONS), "some topics must have several segments"
    printed = tool("DumpLogSegments", "--index-sanity-check", "--files", ",".join(indexes))
    verdicts = printed.count("passed sanity check.") + printed.count(".index is empty.")
    assert verdicts == len(indexes), printed
    assert printed.count("passed sanity check.") > len(indexes) // 2, (
        "most indexes must have something in them"
    )
    printed = tool("DumpLogSegments", "--verify-index-only", "--files", ",".join(indexes))
    for complaint in ("Mismatches in", "Found timestamp mismatch", "Found out of order", "Exception"):
        assert complaint not in printed, printed
    transactions = files(server.log_dir, ".txnindex")
    if transactions:
        assert "Exception" not in tool("DumpLogSegments", "--files", ",".join(transactions))
