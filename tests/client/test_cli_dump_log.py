"""`ottla dump-log` on the files of running servers, and beside Kafka's own tool."""

import re
from pathlib import Path

import pytest

from tests.client.command_line import CommandLine
from tests.compat.absence import need_kafka
from tests.compat.chosen import MakeTopic
from tests.peers.deadline import eventually
from tests.peers.kafka import tool
from tests.peers.server import Server


@pytest.fixture
def ottla(server: Server, tmp_path: Path) -> CommandLine:
    return CommandLine(server.bootstrap, tmp_path)


@pytest.fixture
def topic(ottla: CommandLine, make_topic: MakeTopic) -> str:
    """Two segments, batches of every codec, and transactions of either end."""
    name = make_topic(segment_bytes=1 << 20, index_interval_bytes=1024)
    ottla("perf", "produce", name, "-n", "1200", "-s", "1k")
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        for _ in range(2):
            ottla(
                "produce",
                name,
                "-z",
                codec,
                "-K",
                ":",
                stdin="".join(f"k{n}:{'x' * 50}\n" for n in range(40)),
            )
    ottla("produce", name, "-X", f"transactional.id={name}", "committed")
    ottla.run("produce", name, "-f", "hex", "-X", f"transactional.id={name}", stdin="00\nxx\n")
    return name


def partition(server: Server, topic: str, number: int = 0) -> Path:
    return server.log_dir / f"{topic}-{number}"


def test_a_running_log_is_sound(ottla: CommandLine, server: Server, topic: str) -> None:
    """All that was written is there, and all files agree with each other."""
    found = ottla("dump-log", str(partition(server, topic)), "--records", "-o", "json").jsons
    batches = [each for each in found if each["kind"] == "batch"]
    records = [each for each in found if each["kind"] == "record"]
    assert {each["codec"] for each in batches} == {"none", "gzip", "snappy", "lz4", "zstd"}
    assert [each["offset"] for each in records] == list(range(1200 + 8 * 40 + 4))
    assert [each["type"] for each in records if "type" in each] == ["commit", "abort"]
    assert len({each["file"] for each in batches}) == 2
    ottla("dump-log", str(partition(server, topic)), "--verify")


def test_it_says_what_kafka_says(ottla: CommandLine, server: Server, topic: str) -> None:
    need_kafka()
    for path in sorted(partition(server, topic).glob("*.log")):
        ours = ottla("dump-log", str(path), "-o", "json").jsons
        said = tool("DumpLogSegments", "--files", str(path))
        theirs = [
            dict(re.findall(r"(\w+): (\S+)", line)) for line in said.splitlines() if "baseOffset" in line
        ]
        names = {
            "base_offset": "baseOffset", "last_offset": "lastOffset", "count": "count", "position": "position",
            "size": "size", "codec": "compresscodec", "leader_epoch": "partitionLeaderEpoch", "crc": "crc",
            "producer_id": "producerId", "producer_epoch": "producerEpoch", "base_sequence": "baseSequence",
            "last_sequence": "lastSequence", "max_timestamp": "CreateTime",
        }  # fmt: skip
        assert [{name: str(each[name]) for name in names} for each in ours] == [
            {name: each[other].lower() for name, other in names.items()} for each in theirs
        ]


def test_offsets_of_groups(ottla: CommandLine, server: Server, topic: str) -> None:
    group = f"{topic}-group"
    ottla("consume", topic, "-g", group, "-n", "5")
    paths = [str(path) for path in sorted(server.log_dir.glob("__consumer_offsets-*/*.log"))]

    def offsets() -> list[int]:
        found = ottla("dump-log", *paths, "--records", "-o", "json").jsons
        keys = [each for each in found if each.get("type") == "OffsetCommit"]
        return [each["data"]["offset"] for each in keys if each["key"]["group"] == group and each["data"]]

    eventually(lambda: offsets() == [5])


def test_metadata(ottla: CommandLine, server: Server, topic: str) -> None:
    found = ottla("dump-log", str(server.log_dir / "__cluster_metadata-0"), "-r", "-o", "json").jsons
    records = [each for each in found if each["kind"] == "record"]
    named = [each["data"] for each in records if each.get("type") == "TopicRecord"]
    (described,) = ottla("topic", "describe", topic, "-o", "json").json
    assert {"name": topic, "topic_id": described["id"]} in named
    assert not [each for each in records if "unreadable" in each]
    assert any(each.get("type") == "leader-change" for each in records)
