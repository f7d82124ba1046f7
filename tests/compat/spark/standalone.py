"""A Spark cluster of one master and some workers, as processes on this machine, out of the PySpark package.

    with Standalone(directory) as cluster:
        session(master=cluster.master)

C1  Master, workers and executors listen on loopback only.
C2  The cluster is ready when the master counts all its workers alive.
C3  Whatever is started here is ended here, by its process id, executors and their Python processes too.

The package brings no scripts to start a cluster, but all their classes: `spark-class` runs those.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
from pyspark.find_spark_home import _find_spark_home

from ottla.spark.java import find_java
from tests.peers.jars import CHECKOUT
from tests.peers.server import HOST, free_ports

START_SECONDS_MAX = 90.0
STOP_SECONDS_MAX = 20.0
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_EXECUTOR = "CoarseGrainedExecutorBackend"
_RUNNING: "set[Standalone]" = set()


class ClusterFailed(Exception):
    """A part of the cluster ended, or did not come up; the text ends with what it last said."""


class Standalone:
    """A standalone cluster. `cores` and `memory` are those of each worker."""

    def __init__(self, directory: Path, *, workers: int = 2, cores: int = 1, memory: str = "1g") -> None:
        self.directory = directory
        self.cores = cores
        self.memory = memory
        self._count = workers
        self._port, self._page_port = free_ports(2)
        self._master: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []

    @property
    def master(self) -> str:
        """What to give a session as its master."""
        return f"spark://{HOST}:{self._port}"

    def start(self) -> Self:
        """Start all parts, and return once the workers have registered."""
        self.directory.mkdir(parents=True, exist_ok=True)
        _RUNNING.add(self)
        try:
            where = ["--host", HOST, "--port", str(self._port), "--webui-port", str(self._page_port)]
            self._master = self._run("master", _MASTER, *where)
            # A worker gives up on a master that is not there yet only after minutes, but tries in long steps.
            self._wait(lambda: self.state() is not None)
            for number in range(self._count):
                self.add_worker(number)
            self._wait(lambda: self.alive() == self._count)
        except BaseException:
            self.stop()
            raise
        return self

    def add_worker(self, number: int) -> None:
        """Start a worker, and do not wait for it."""
        work = self.directory / f"work-{number}"
        asked = ["--cores", str(self.cores), "--memory", self.memory, "--work-dir", str(work)]
        where = ["--host", HOST, "--port", "0", "--webui-port", "0"]
        self.workers.append(self._run(f"worker-{number}", _WORKER, *where, *asked, self.master))

    def _run(self, name: str, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            **find_java().variables,
            "PYSPARK_PYTHON": sys.executable,
            # What programs are made of is installed on every worker.
            "PYTHONPATH": os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH")])),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_DAEMON_MEMORY": "256m",
            # They live for a minute: the optimising compiler and a parallel collector only get in their way.
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }
        command = [str(Path(_find_spark_home()) / "bin" / "spark-class"), main, *arguments]
        with (self.directory / f"{name}.out").open("ab") as output:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
            )

    def state(self) -> dict[str, Any] | None:
        """What the master tells about itself, or None while it does not answer."""
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self._page_port}/json/", timeout=5) as answer:
                told: dict[str, Any] = json.load(answer)
                return told
        except OSError:
            return None

    def alive(self) -> int:
        """How many workers the master counts."""
        state = self.state()
        return state["aliveworkers"] if state else 0

    def executors(self) -> list[int]:
        """The process ids of the executors that run now, those of the first worker first."""
        found = []
        for worker in self.workers:
            for child in _family(worker.pid):
                try:
                    # A shell may still be about to become one.
                    if child.name() == "java" and any(_EXECUTOR in each for each in child.cmdline()):
                        found.append(child.pid)
                except psutil.Error:
                    continue
        return found

    def stop(self) -> None:
        """End everything, at once where it does not end when asked."""
        _RUNNING.discard(self)
        parts = [*self.workers, *([self._master] if self._master else [])]
        families = [each for part in parts for each in _family(part.pid)]
        for part in parts:
            part.send_signal(signal.SIGTERM)
        _, left = psutil.wait_procs(families, timeout=STOP_SECONDS_MAX)
        for each in left:
            each.kill()
        for part in parts:
            part.wait()
        self.workers.clear()
        self._master = None

    def _wait(self, condition: Any) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while not condition():
            parts = [self._master, *self.workers]
            if any(part is not None and part.poll() is not None for part in parts):
                raise ClusterFailed(f"a part of the cluster ended:\n{self.last_words()}")
            if time.monotonic() > deadline:
                raise ClusterFailed(f"the cluster did not come up:\n{self.last_words()}")
            time.sleep(0.05)

    def last_words(self, lines_max: int = 15) -> str:
        """The end of what each part printed."""
        said = []
        for path in sorted(self.directory.glob("*.out")):
            lines = path.read_text(errors="replace").splitlines()[-lines_max:]
            said.append("\n".join([f"{path.name}:", *lines]))
        return "\n".join(said)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _family(pid: int) -> list[psutil.Process]:
    try:
        head = psutil.Process(pid)
        return [head, *head.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


@atexit.register
def _end_all() -> None:
    for cluster in list(_RUNNING):
        cluster.stop()
