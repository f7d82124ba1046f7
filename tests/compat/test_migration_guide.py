"""The guides to migration and to backups: their examples run in the order of the page, the first on Apache Kafka."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.client.command_line import COMMAND
from tests.peers import jars
from tests.peers.kafka import SHORT_LIVED, KafkaServer
from tests.peers.server import HOST, Server

pytestmark = pytest.mark.long

EXAMPLE = re.compile(r"^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)
SECONDS_MAX = 100
SCRIPTS = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-features.sh": "org.apache.kafka.tools.FeatureCommand",
    "kafka-consumer-groups.sh": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-console-producer.sh": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer.sh": "org.apache.kafka.tools.consumer.ConsoleConsumer",
}
STOP = "kill $(cat kafka.pid); while kill -0 $(cat kafka.pid) 2>/dev/null; do sleep 0.2; done"
# As with Kafka's own script, -daemon and the file.
START = 'kafka-server "$2" >>kafka.out 2>&1 & echo $! >kafka.pid'


class Shell:
    """A folder with `ottla`, Kafka's scripts and a properties file, and a shell in it."""

    def __init__(self, home: Path, server: Server) -> None:
        self.home, self.port = home, server.port
        self.programs = home / "bin"
        self.programs.mkdir()
        lines = (f"{name}={value}\n" for name, value in server.properties().items())
        (home / "server.properties").write_text("".join(lines))
        self.script("ottla", f'exec {" ".join(COMMAND)} "$@"')
        self.environment = dict(os.environ)
        self.environment["PATH"] = f"{self.programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment["OTTLA_BOOTSTRAP"] = server.bootstrap

    def script(self, name: str, line: str) -> None:
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def add_kafka(self, server: KafkaServer) -> None:
        """Kafka's scripts, which lie beside its jars in a download."""
        java = f"exec {jars.java()} {' '.join(SHORT_LIVED)} -cp '{jars.classpath()}'"
        for name, tool in SCRIPTS.items():
            self.script(name, f'{java} {tool} "$@"')
        *command, _ = server.start_command()
        self.script("kafka-server", f'exec {" ".join(map(repr, command))} "$@"')
        self.script("kafka-server-start.sh", START)
        self.script("kafka-server-stop.sh", STOP)

    def run(self, script: str) -> str:
        """Run what a block says; the file keeps what was printed, since servers that go on would keep a pipe open."""
        printed = self.home / "printed"
        with printed.open("wb") as output:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", script.replace("localhost:9092", f"{HOST}:{self.port}")],
                cwd=self.home,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
                timeout=SECONDS_MAX,
            )
        text = printed.read_text()
        assert done.returncode == 0, f"{script}\n{text}"
        return text

    def end(self) -> None:
        """End what a block that failed has left."""
        for file in self.home.glob("*.pid"):
            subprocess.run(["bash", "-c", f"kill -9 {int(file.read_text())} 2>/dev/null"], check=False)


def examples(page: str) -> list[tuple[str, str]]:
    return EXAMPLE.findall((jars.CHECKOUT / "docs" / page).read_text(encoding="utf-8"))


@pytest.mark.usefixtures("apache_kafka")
@pytest.mark.timeout(600)
def test_migration_and_back(tmp_path: Path) -> None:
    server = KafkaServer(tmp_path)
    server.format()
    shell = Shell(tmp_path, server)
    shell.add_kafka(server)
    blocks = examples("guide/migration.md")
    assert len(blocks) == 6
    printed = []
    try:
        shell.run(
            f"kafka-server-start.sh -daemon server.properties\n"
            f"until kafka-topics.sh --bootstrap-server {server.bootstrap} --list; do sleep 1; done"
        )
        for script, expected in blocks:
            printed.append(shell.run(script))
            assert not expected or printed[-1].endswith(expected), script
        shell.run("kafka-server-stop.sh")
    finally:
        shell.end()
    on_ottla, back = printed[4], printed[5]
    assert "0 tea\n1 cake\n2 pie\n" in on_ottla
    assert on_ottla.count("pie") == 2, "the group goes on where it had stopped"
    assert re.search(r"tea\ncake\npie\ncoffee\n", back)
    assert re.search(r"kitchen\s+orders\s+0\s+3\s+4\s+1\s", back)


@pytest.mark.timeout(300)
def test_backup_and_restore(tmp_path: Path) -> None:
    server = KafkaServer(tmp_path)  # for its properties alone
    shell = Shell(tmp_path, server)
    blocks = examples("operations/backup.md")
    assert len(blocks) == 3
    try:
        shell.run(
            "ottla storage format --standalone -t $(ottla storage random-uuid) --config server.properties"
        )
        said = [shell.run(script) for script, _ in blocks]
    finally:
        shell.end()
    assert "tea\ncake\n" in said[1]
    assert "sound" in said[1]
    assert "tea\ncake\n" in said[2]
