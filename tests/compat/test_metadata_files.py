"""The metadata log goes both ways: Apache Kafka reads and continues ours, and we read and continue its."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ottla.log.identity import read_identity
from ottla.metadata.config import ConfigType
from ottla.quorum.storage import Format, format_storage
from ottla.raft.voters import Address
from ottla.world.disk import RealDisk
from ottla.world.entropy import RealEntropy
from tests.peers.deadline import eventually
from tests.peers.kafka import KafkaServer, tool
from tests.peers.ottla import OttlaServer
from tests.unit.quorum.workshop import SetClock, Workshop

if TYPE_CHECKING:
    from ottla.metadata.image import Image
    from tests.peers.server import Server

pytestmark = pytest.mark.usefixtures("apache_kafka")


class OnKafkas(Workshop):
    """A workshop over the directory of an Apache Kafka server; it joins with that server's ports."""

    def __init__(self, server: KafkaServer, **settings: object) -> None:
        self.server = server
        self.address = Address("CONTROLLER", "127.0.0.1", server.controller_port)
        self.static = "controller.quorum.voters" in server.settings
        server.directory.mkdir(parents=True, exist_ok=True)
        super().__init__(server.directory, static=self.static, address=self.address, **settings)


def dump(*files: Path) -> list[dict[str, object]]:
    """The records that Kafka's own tool finds in metadata files."""
    printed = tool(
        "DumpLogSegments", "--cluster-metadata-decoder", "--files", ",".join(map(str, files)), check=True
    )
    assert "isvalid: false" not in printed
    return [json.loads(payload) for payload in re.findall(r"payload: (\{.*\})", printed)]


def topics(image: Image) -> dict[str, tuple[bytes, int, dict[str, str]]]:
    """What must be the same on both sides."""
    return {
        topic.name: (topic.id, len(topic.partitions), dict(image.configs.of(ConfigType.TOPIC, topic.name)))
        for topic in image.topics.by_name.values()
    }


def fill(shop: Workshop) -> None:
    shop.join()
    shop.create("plain", "with.dots", partitions=3)
    for number in range(30):
        shop.create(f"t{number}")


def test_kafkas_tool_reads_our_log_and_snapshots(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, snapshot_bytes=1500)
    fill(shop)
    shop.quorum.close()
    snapshot = max(shop.log_path.glob("*.checkpoint"))
    records = dump(shop.log_path / "00000000000000000000.log")
    assert [record["type"] for record in records[:2]] == ["BEGIN_TRANSACTION_RECORD", "FEATURE_LEVEL_RECORD"]
    made = {each["data"]["name"] for each in records if each["type"] == "TOPIC_RECORD"}  # type: ignore[index]
    assert made == set(shop.quorum.image.topics.by_name)
    in_snapshot = [record for record in dump(snapshot) if record["type"] == "PARTITION_RECORD"]
    assert in_snapshot
    assert dump(Path(shop.directory) / "bootstrap.checkpoint")[0]["data"] == {
        "name": "metadata.version",
        "featureLevel": 30,
    }
    sane = tool(
        "DumpLogSegments",
        "--index-sanity-check",
        "--files",
        str(shop.log_path / "00000000000000000000.timeindex"),
    )
    assert "passed sanity check" in sane


@pytest.mark.parametrize("quorum", ["dynamic", "static"])
def test_kafka_continues_our_log_and_we_continue_its(tmp_path: Path, quorum: str) -> None:
    kafka = KafkaServer(tmp_path)
    if quorum == "static":
        kafka.settings["controller.quorum.voters"] = f"1@127.0.0.1:{kafka.controller_port}"
    shop = OnKafkas(kafka, snapshot_bytes=1500, segment_bytes=2500, retention_bytes=5000)
    fill(shop)
    before = topics(shop.quorum.image)
    shop.quorum.close()
    assert min(shop.log_path.glob("*.log")).name > "00000000000000000000.log", (
        "the log was cut below a snapshot"
    )

    kafka.formatted = True
    kafka.cluster_id = "4L6g3nShT-eMCtK--X86sw"
    with kafka:
        listed = tool("TopicCommand", "--bootstrap-server", kafka.bootstrap, "--list").split()
        assert set(before) <= set(listed)
        tool(
            "TopicCommand",
            "--bootstrap-server",
            kafka.bootstrap,
            "--create",
            "--topic",
            "kafkas",
            "--partitions",
            "4",
            "--config",
            "cleanup.policy=compact",
        )
        tool("TopicCommand", "--bootstrap-server", kafka.bootstrap, "--delete", "--topic", "t0")
        described = tool(
            "MetadataQuorumCommand", "--bootstrap-server", kafka.bootstrap, "describe", "--status"
        )
        assert re.search(r"LeaderId:\s+1\n", described)
        eventually(
            lambda: "t0" not in tool("TopicCommand", "--bootstrap-server", kafka.bootstrap, "--list").split()
        )

    shop.reopen(close=False, address=shop.address)
    after = topics(shop.quorum.image)
    kafkas = after.pop("kafkas")
    assert kafkas[1:] == (4, {"cleanup.policy": "compact"})
    del before["t0"]
    assert after == before
    shop.join()
    assert all(
        state.leader == 1 and state.isr == (1,)
        for topic in shop.quorum.image.topics.by_name.values()
        for state in topic.partitions.values()
    )
    assert shop.create("ours.again") == [0]
    shop.quorum.close()
    log = max(shop.log_path.glob("*.log"))
    assert any(record["type"] == "TOPIC_RECORD" for record in dump(log))


def test_kafka_starts_on_what_we_formatted_and_not_yet_used(tmp_path: Path) -> None:
    kafka = KafkaServer(tmp_path)
    data = str(kafka.log_dir)
    address = Address("CONTROLLER", "127.0.0.1", kafka.controller_port)
    disk = RealDisk()
    format_storage(
        disk, SetClock(), RealEntropy(), Format(kafka.cluster_id, 1, [data], data, standalone=(address,))
    )
    assert read_identity(disk, data) is not None
    kafka.formatted = True
    with kafka:
        features = tool("FeatureCommand", "--bootstrap-server", kafka.bootstrap, "describe")
        finalized = dict(re.findall(r"Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)", features))
        assert finalized == {
            "eligible.leader.replicas.version": "1",
            "group.version": "1",
            "kraft.version": "1",
            "metadata.version": "4.3-IV0",
            "share.version": "1",
            "streams.version": "1",
            "transaction.version": "2",
        }


class StaticKafka(KafkaServer):
    """Apache Kafka whose voters stand in its settings, and not on disk."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.settings["controller.quorum.voters"] = f"1@127.0.0.1:{self.controller_port}"

    def format_command(self) -> list[str]:
        return [each for each in super().format_command() if each != "--standalone"]


class StaticOttla(OttlaServer):
    """Ottla whose voters stand in its settings, and not on disk."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.settings["controller.quorum.voters"] = f"1@127.0.0.1:{self.controller_port}"

    def format_command(self) -> list[str]:
        return [each for each in super().format_command() if each != "--standalone"]


@pytest.mark.parametrize("served", [False, True], ids=["formatted", "served"])
@pytest.mark.parametrize("kind", [KafkaServer, StaticKafka, OttlaServer, StaticOttla])
def test_we_start_on_every_directory_there_is(tmp_path: Path, kind: type[Server], served: bool) -> None:
    first = kind(tmp_path / "first")
    first.format()
    expected = {"ours"}
    if served:
        with first:
            tool("TopicCommand", "--bootstrap-server", first.bootstrap, "--create", "--topic", "theirs")
        expected.add("theirs")
    with OttlaServer(tmp_path / "then", like=first) as ottla:
        tool("TopicCommand", "--bootstrap-server", ottla.bootstrap, "--create", "--topic", "ours")
        assert set(tool("TopicCommand", "--bootstrap-server", ottla.bootstrap, "--list").split()) == expected
