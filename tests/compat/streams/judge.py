"""Kafka Streams as the judge: its TopologyTestDriver runs the topologies of `java/` on given records.

    with Judge(directory) as judge:
        judge.run("count", [("in", "a", "1", 0), ("in", "a", "2", 5)])

The jars come from Maven Central on first use, as Apache Kafka's own do (`tests/peers/jars.py`), and the Java beside
this module is compiled when it has changed. One Java machine runs all topologies, one after another.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from tests.compat.streams.records import Row
from tests.peers import jars
from tests.peers.kafka import SHORT_LIVED

HERE = Path(__file__).parent
POM = HERE / "pom.xml"
HOME = jars.CHECKOUT / ".cache" / f"kafka-streams-{jars.VERSION}"
COMPILER = "jdk.compiler/com.sun.tools.javac.Main"
COMPILE_SECONDS_MAX = 120
# Beyond this a machine that has read everything is not told from one that is stuck.
ANSWER_SECONDS_MAX = 300


class Judge:
    """A Java machine that runs topologies by their names."""

    def __init__(self, directory: Path) -> None:
        path = f"{classes()}:{jars.folder(POM, HOME)}/*"
        options = [each for each in SHORT_LIVED if not each.startswith("-Dlog4j2")]
        self._directory = directory
        self._errors = directory / "errors"
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                [jars.java(), *options, f"-Djava.io.tmpdir={directory}", "-cp", path, "Judge"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def run(self, name: str, records: Sequence[Row], stores: str = "memory") -> list[Row]:
        """Return what a topology writes when records are piped into it in this order."""
        given, found = self._directory / "given", self._directory / "found"
        given.write_text("".join(json.dumps(each) + "\n" for each in records))
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{name}\t{stores}\t{given}\t{found}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().rstrip("\n")
        assert answer == "done", f"{answer}\n{self._errors.read_text()[-4000:]}"
        return [_row(json.loads(line)) for line in found.read_text().splitlines()]

    def close(self) -> None:
        """End the machine."""
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _row(line: list[Any]) -> Row:
    topic, key, value, timestamp = line
    return topic, key, value, timestamp


def absent() -> str | None:
    """Why Kafka Streams cannot be run, or nothing if it can."""
    try:
        jars.folder(POM, HOME)
        classes()
    except jars.KafkaAbsent as reason:
        return f"Kafka Streams {jars.VERSION}: {reason}"
    return None


def classes() -> Path:
    """Where the compiled topologies lie; compiled anew when a source is not what it was."""
    libs = jars.folder(POM, HOME)
    sources = sorted((HERE / "java").glob("*.java"))
    digest = hashlib.sha256(b"\0".join(each.read_bytes() for each in sources)).hexdigest()
    found = HOME / f"classes-{digest[:16]}"
    with (HOME / "compiling").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not found.exists():
            for old in HOME.glob("classes-*"):
                shutil.rmtree(old)
            _compile(sources, libs, found)
    return found


def _compile(sources: list[Path], libs: Path, found: Path) -> None:
    half_done = HOME / "compiled"
    shutil.rmtree(half_done, ignore_errors=True)
    # The compiler is a module of the JDK; a mere JRE has none.
    path = os.pathsep.join(str(each) for each in sorted(libs.glob("*.jar")))
    command = [jars.java(), *SHORT_LIVED, "-m", COMPILER, "-nowarn", "-d", str(half_done), "-cp", path]
    done = subprocess.run(
        [*command, *map(str, sources)],
        check=False,
        capture_output=True,
        text=True,
        timeout=COMPILE_SECONDS_MAX,
    )
    if "Module jdk.compiler not found" in done.stdout + done.stderr:
        raise jars.KafkaAbsent("Java is here without its compiler")
    assert done.returncode == 0, done.stderr
    half_done.rename(found)
