"""Apache Kafka's own classes read what we write, and write it again: the bytes must be the same.

Skips aloud where Java or the jars cannot be had.
"""

import subprocess
from pathlib import Path

import pytest

from ottla.wire.catalog import every_message
from ottla.wire.message import Message
from tests.peers import jars
from tests.unit.wire.samples import Sampler

ECHO = Path(__file__).with_name("Echo.java")
HOMES = {
    "ottla.wire.records.metadata": "org.apache.kafka.common.metadata.{}",
    "ottla.wire.records.transaction": "org.apache.kafka.coordinator.transaction.generated.{}",
    "ottla.wire.records.quorum": "org.apache.kafka.raft.generated.{}",
    "ottla.wire.records.remote_log": "org.apache.kafka.server.log.remote.metadata.storage.generated.{}",
    "ottla.wire.records.producer_snapshot": "org.apache.kafka.server.log.remote.metadata.storage.generated.{}",
    "ottla.wire.records.share_state": "org.apache.kafka.coordinator.share.generated.{}",
    **{
        f"ottla.wire.records.{name}": "org.apache.kafka.coordinator.group.generated.{}"
        for name in ("offset", "classic_group", "consumer_group", "share_group", "streams_group")
    },
}
SAMPLES = 3
# Kafka 4.3.1 is older than the request schemas, which are those of 4.4.
NEWER = {
    ("ApiVersions", 5),
    ("TxnOffsetCommit", 6),
    ("DeleteGroups", 3),
    ("StreamsGroupHeartbeat", 1),
    ("StreamsGroupDescribe", 1),
    ("StreamsGroupTopologyDescriptionUpdate", 0),
    ("UnregisterController", 0),
    ("AbortedTxn", 0),
}


def java_class(cls: type[Message]) -> str:
    """The name of Kafka's class for a message of ours."""
    plain = not cls.__name__.endswith(("Request", "Response", "Header"))
    home = HOMES.get(cls.__module__, "org.apache.kafka.common.message.{}" + ("" if plain else "Data"))
    return home.format(cls.__name__)


def is_newer(cls: type[Message], version: int) -> bool:
    return (cls.__name__.removesuffix("Request").removesuffix("Response"), version) in NEWER


@pytest.mark.usefixtures("kafka_jars")
@pytest.mark.timeout(300)
def test_kafka_writes_what_it_read_from_us() -> None:
    lines = []
    for number, cls in enumerate(every_message()):
        for version in cls.versions:
            sampler = Sampler(number * 1000 + version)
            if not is_newer(cls, version):
                lines += [
                    f"{java_class(cls)} {version} {sampler.message(cls, version).encode(version).hex()}"
                    for _ in range(SAMPLES)
                ]
    answers = subprocess.run(
        [jars.java(), "-Xshare:auto", "-cp", jars.classpath(), str(ECHO)],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=110,
    ).stdout.splitlines()
    wrong = [
        f"{line.rpartition(' ')[0]}: {answer[:200]}"
        for line, answer in zip(lines, answers, strict=True)
        if answer != f"0 {line.rpartition(' ')[2]}"
    ]
    assert not wrong, "\n".join(wrong)
