"""Kafka Streams: a word count that is exact to the last word, on the classic protocol and in streams groups (KIP-1071).

The application writes down every count it makes. A word that was read n times must have got the counts 1 to n, each
once and in order, whatever happened to the instances meanwhile.
"""

import itertools
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.peers import jars
from tests.peers.deadline import eventually
from tests.peers.kafka import SHORT_LIVED, tool
from tests.peers.server import Server

pytestmark = pytest.mark.usefixtures("apache_kafka")

SOURCE = Path(__file__).with_name("WordCount.java")
# Members of streams groups learn of changes by their heartbeats, which are seconds apart unless told otherwise.
SETTINGS = {
    "group.streams.min.heartbeat.interval.ms": "300",
    "group.streams.heartbeat.interval.ms": "300",
    "group.streams.initial.rebalance.delay.ms": "100",
    "group.streams.min.session.timeout.ms": "2000",
    "group.streams.session.timeout.ms": "2000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
PARTITIONS = 2
TASKS = {f"{subtopology}_{partition}" for subtopology in range(2) for partition in range(PARTITIONS)}
SECONDS_MAX = 40.0
_serial = itertools.count(1)


@pytest.fixture(scope="module")
def cluster(server_class: type[Server], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server whose streams groups are in a hurry."""
    with server_class(tmp_path_factory.mktemp("streams"), SETTINGS) as running:
        yield running.bootstrap


class WordCount:
    """The application, its input and its output."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self.name = f"count-{next(_serial)}"
        self.bootstrap = bootstrap
        self._directory = directory
        self._input, self._output = f"{self.name}-lines", f"{self.name}-sums"
        self._errors = directory / "errors"
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        topics = [NewTopic(name, PARTITIONS, 1) for name in (self._input, self._output)]
        for future in admin.create_topics(topics).values():
            future.result(20)
        self._producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "log_level": 0})
        self._consumer.assign([TopicPartition(self._output, index, 0) for index in range(PARTITIONS)])
        self._written: dict[str, int] = {}
        self._counts: dict[str, list[int]] = {}
        self._process = self._launch()

    def _launch(self) -> subprocess.Popen[str]:
        command = [jars.java(), *SHORT_LIVED, "-cp", jars.classpath(), str(SOURCE)]
        command += [self.bootstrap, self.name, self._input, self._output, str(self._directory)]
        with self._errors.open("a") as errors:
            return subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(SECONDS_MAX)
        finally:
            self._process.kill()

    def ask(self, line: str) -> str:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(line + "\n")
        stdin.flush()
        answer = stdout.readline().rstrip()
        assert answer, self._errors.read_text()
        return answer

    def start(self, instance: str, protocol: str) -> None:
        assert self.ask(f"start {instance} {protocol}") == "started"

    def stop(self, instance: str) -> None:
        assert self.ask(f"stop {instance}") == "true", "it did not stop in time"

    def die(self) -> None:
        """End all instances as a power cut would, and begin anew without any."""
        self._process.kill()
        self._process.wait(SECONDS_MAX)
        self._process = self._launch()

    def tasks(self) -> list[set[str]]:
        """The active tasks of every instance, once all of them are running; nothing before."""
        found = [each.partition("=")[2].partition(":") for each in self.ask("tasks").split()]
        assert all(state != "ERROR" for state, _, _ in found), self._errors.read_text()
        if any(state != "RUNNING" for state, _, _ in found):
            return []
        return [set(tasks.split(",")) - {""} for _, _, tasks in found]

    def share(self, instances: int) -> None:
        """Wait until so many instances have equally many tasks, and each task is run once."""

        def fair() -> bool:
            found = self.tasks()
            sizes = [len(tasks) for tasks in found]
            return sizes == [len(TASKS) // instances] * instances and set().union(*found) == TASKS

        eventually(fair, SECONDS_MAX)

    def write(self, lines: int = 50) -> None:
        for number in range(lines):
            words = ["every", "line", f"some{number % 7}", f"one{number}", "every"]
            for word in words:
                self._written[word] = self._written.get(word, 0) + 1
            self._producer.produce(self._input, " ".join(words), partition=number % PARTITIONS)
        assert self._producer.flush(20) == 0

    def read(self) -> int:
        """Read what there is of the counts, and return how many there are by now."""
        for message in self._consumer.consume(1_000, 0.1):
            assert message.error() is None, message.error()
            count = int.from_bytes(message.value() or b"", "big")
            self._counts.setdefault((message.key() or b"").decode(), []).append(count)
        return sum(map(len, self._counts.values()))

    def check(self) -> None:
        """Every word written has been counted, and every count was made once, in order."""
        wanted = sum(self._written.values())
        eventually(lambda: self.read() >= wanted, SECONDS_MAX)
        assert self._counts == {word: list(range(1, count + 1)) for word, count in self._written.items()}

    def groups(self, *arguments: str) -> str:
        """Ask the tool for streams groups."""
        return tool("streams.StreamsGroupCommand", "--bootstrap-server", self.bootstrap, *arguments)


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_counts_are_exact(cluster: str, tmp_path: Path, protocol: str) -> None:
    with WordCount(cluster, tmp_path) as app:
        app.write()
        app.start("a", protocol)
        app.share(1)
        app.check()
        app.start("b", protocol)
        app.write()
        app.share(2)
        app.write()
        app.check()
        if protocol == "streams":
            the_tool_shows(app)
        app.stop("a")
        app.share(1)
        app.write()
        app.check()
        app.stop("b")
        app.write()
        app.start("a", protocol)
        app.check()


def the_tool_shows(app: WordCount) -> None:
    """Two members share the tasks, and nothing is left to be read."""
    assert f"{app.name} Stable" in " ".join(app.groups("--list", "--state").split())
    asked = ["--group", app.name, "--describe"]
    lags = [line.split()[1:] for line in app.groups(*asked).splitlines() if "-lines" in line]
    assert sorted(lags) == [[f"{app.name}-lines", str(index), "0"] for index in range(PARTITIONS)]
    assert app.groups(*asked, "--members").count("ACTIVE:") == 2


def test_an_application_changes_its_protocol(cluster: str, tmp_path: Path) -> None:
    with WordCount(cluster, tmp_path) as app:
        for protocol in ("classic", "streams", "classic"):
            app.write()
            app.start("a", protocol)
            app.check()
            app.stop("a")


def test_counts_stay_exact_when_the_application_is_killed(cluster: str, tmp_path: Path) -> None:
    with WordCount(cluster, tmp_path) as app:
        app.start("a", "streams")
        app.write()
        app.check()
        before = app.read()
        app.write(10_000)
        eventually(lambda: app.read() > before, SECONDS_MAX)
        app.die()
        assert app.read() < before + 50_000, "nothing was left to be counted"
        app.start("a", "streams")
        app.check()
