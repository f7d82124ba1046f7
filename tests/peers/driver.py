"""A Spark driver as a process of its own, that runs functions of this checkout by name.

    with SparkDriver(directory, {"spark.jars": …}) as driver:
        rows = driver.call(read_all, bootstrap, topic)      # read_all(spark, bootstrap, topic), over there

A process has one Java machine and one session; a test that needs jars or a cluster of its own, or that kills its
driver, has it here. Arguments and results travel as JSON.

D1  An error over there is a `DriverFailed` here, with its text; the driver lives on.
D2  Whatever the driver starts, its Java machine and the workers of Python, ends with it.
"""

import atexit
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from tests.peers import process
from tests.peers.jars import CHECKOUT

START_SECONDS_MAX = 90.0
CALL_SECONDS_MAX = 110.0
# A driver that lives for seconds: the optimising compiler and a parallel collector only get in its way.
SHORT_LIVED = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
_RUNNING: "set[SparkDriver]" = set()


class DriverFailed(Exception):
    """What was called raised an error, or the driver is gone; the text says which."""


class SparkDriver:
    """A session of Spark in another process. `ottla` sessions know the format of that name, plain ones do not."""

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        *,
        master: str = "local[2]",
        ottla: bool = False,
    ) -> None:
        self.directory = directory
        self.settings = {
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": str(directory / "local"),
            "spark.sql.warehouse.dir": str(directory / "warehouse"),
            **(settings or {}),
        }
        self.master, self.ottla = master, ottla
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "the driver is not running"
        return self._process.pid

    @property
    def output_path(self) -> Path:
        return self.directory / "driver.out"

    def start(self, *, wait: bool = True) -> Self:
        """Start the process, and wait for its session unless told not to; `wait_ready` then comes before any call."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with self.output_path.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.peers.driving"],
                cwd=CHECKOUT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
            )
        _RUNNING.add(self)
        self._send([self.master, self.settings, self.ottla])
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self) -> None:
        """Return once there is a session."""
        self._receive(START_SECONDS_MAX)

    def call(
        self, function: Callable[..., Any], *arguments: Any, seconds_max: float = CALL_SECONDS_MAX
    ) -> Any:
        """Run a function of a module over there, with the session before these arguments."""
        self._send([function.__module__, function.__qualname__, arguments])
        return self._receive(seconds_max)

    def _send(self, message: object) -> None:
        assert self._process is not None and self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise DriverFailed(f"the driver is gone:\n{self.last_words()}") from None

    def _receive(self, seconds_max: float) -> Any:
        assert self._process is not None and self._process.stdout is not None
        waiting = select.poll()
        waiting.register(self._process.stdout, select.POLLIN)
        if not waiting.poll(seconds_max * 1000):
            raise DriverFailed(f"no answer within {seconds_max} s:\n{self.last_words()}")
        line = self._process.stdout.readline()
        if not line:
            raise DriverFailed(f"the driver is gone:\n{self.last_words()}")
        kind, result = json.loads(line)
        if kind == "error":
            raise DriverFailed(result)
        return result

    def family(self) -> list[int]:
        """The process ids of the driver and of all that it started."""
        return process.family(self.pid) if self._process is not None else []

    def java_pid(self) -> int:
        """The Java machine, which is the driver as Spark has it, and in local mode the executor, too."""
        for pid in self.family():
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text().strip() == "java":
                    return pid
        raise DriverFailed("the driver has no Java machine")

    def workers(self) -> list[int]:
        """The processes of Python that run tasks: those that the daemon of a Java machine of ours has forked."""
        return [pid for daemon in self.family() if _is_daemon(daemon) for pid in process.family(daemon)[1:]]

    def kill(self) -> None:
        """End the driver and all that it started at once."""
        if self._process is None:
            return
        for pid in self.family():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._forget()

    def stop(self) -> None:
        """End the session and the process; kill what is left."""
        if self._process is None:
            return
        family = self.family()
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._forget()
        deadline = time.monotonic() + 10
        while (
            left := [pid for pid in family if Path(f"/proc/{pid}").exists()]
        ) and time.monotonic() < deadline:
            time.sleep(0.05)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _forget(self) -> None:
        assert self._process is not None
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        self._process = None
        _RUNNING.discard(self)

    def last_words(self, lines_max: int = 30) -> str:
        return "\n".join(self.output_path.read_text(errors="replace").splitlines()[-lines_max:])

    def __enter__(self) -> Self:
        return self.start() if self._process is None else self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _is_daemon(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        return b"pyspark.daemon" in words and Path(f"/proc/{parent}/comm").read_text().strip() == "java"
    except OSError:
        return False


@atexit.register
def _end_all() -> None:
    for driver in list(_RUNNING):
        driver.kill()
