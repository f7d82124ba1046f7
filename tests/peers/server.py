"""A one-node broker as a process: format, start, wait, stop; the same for Apache Kafka and for Ottla.

1  Both are given the same server.properties, so each test is a test of Kafka's own setting names, too.
2  A server is ready when it answers ApiVersions on its client listener, and not before.
3  Whatever is started here is ended here, by its process id, at exit at the latest.
"""

import atexit
import base64
import os
import signal
import socket
import struct
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.peers import process

HOST = "127.0.0.1"
START_SECONDS_MAX = 90.0
STOP_SECONDS_MAX = 30.0
_RUNNING: dict[int, subprocess.Popen[bytes]] = {}


class ServerFailed(Exception):
    """The server ended, or did not come up; the text ends with what it last said."""


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind((HOST, 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def random_uuid() -> str:
    """A cluster id in Kafka's text form."""
    while True:
        text = base64.urlsafe_b64encode(os.urandom(16)).rstrip(b"=").decode()
        if not text.startswith("-"):  # a leading dash would be an option to the format command
            return text


class Server(ABC):
    """One broker over one directory. Its ports and its directory outlive a restart."""

    name: str

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        *,
        like: "Server | None" = None,
    ) -> None:
        """`like` takes over another's directory, ports and cluster, as when one product succeeds the other."""
        self.directory = directory
        ports: list[int] = [like.port, like.controller_port] if like else free_ports(2)
        self.port: int = ports[0]
        self.controller_port: int = ports[1]
        self.log_dir: Path = like.log_dir if like else directory / "data"
        self.cluster_id: str = like.cluster_id if like else random_uuid()
        self.formatted: bool = like.formatted if like else False
        self.settings: dict[str, str] = {**(like.settings if like else {}), **(settings or {})}
        self.process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def format_command(self) -> list[str]:
        """The command that formats the directory."""

    @abstractmethod
    def start_command(self) -> list[str]:
        """The command that runs the server in the foreground."""

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None, "the server is not running"
        return self.process.pid

    @property
    def properties_path(self) -> Path:
        return self.directory / f"{self.name}.properties"

    @property
    def output_path(self) -> Path:
        return self.directory / f"{self.name}.out"

    def properties(self) -> dict[str, str]:
        """The settings of a node that is broker and controller in one, with this test's own on top."""
        return {
            "node.id": "1",
            "process.roles": "broker,controller",
            "listeners": f"PLAINTEXT://{HOST}:{self.port},CONTROLLER://{HOST}:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.quorum.bootstrap.servers": f"{HOST}:{self.controller_port}",
            "log.dirs": str(self.log_dir),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
        } | self.settings

    def format(self) -> None:
        """Write the properties, and format the directory unless that was done before."""
        self.directory.mkdir(parents=True, exist_ok=True)
        lines = (f"{key}={value}\n" for key, value in self.properties().items())
        self.properties_path.write_text("".join(lines))
        if self.formatted:
            return
        done = subprocess.run(self.format_command(), check=False, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise ServerFailed(f"format failed: {done.stdout}{done.stderr}")
        self.formatted = True

    def start(self, *, wait: bool = True) -> Self:
        """Start, and wait until clients are answered, unless told not to."""
        assert self.process is None, "the server is already running"
        self.format()
        with self.output_path.open("ab") as output:
            self.process = subprocess.Popen(
                self.start_command(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self.environment(),
            )
        _RUNNING[self.process.pid] = self.process
        if wait:
            self.wait_ready()
        return self

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def wait_ready(self, seconds_max: float = START_SECONDS_MAX) -> None:
        """Return once ApiVersions is answered."""
        deadline = time.monotonic() + seconds_max
        while not self.answers():
            if self.process is not None and self.process.poll() is not None:
                code = self.process.returncode
                self._forget()
                raise ServerFailed(f"{self.name} ended with {code} while starting:\n{self.last_words()}")
            if time.monotonic() > deadline:
                self.kill()
                raise ServerFailed(f"{self.name} did not answer within {seconds_max} s:\n{self.last_words()}")
            time.sleep(0.01)

    def answers(self) -> bool:
        """Whether a client that connects now gets an answer."""
        try:
            with socket.create_connection((HOST, self.port), timeout=5) as connection:
                connection.sendall(struct.pack(">ihhih", 10, 18, 0, 7, -1))  # ApiVersions v0, no client id
                head = connection.recv(8)
                return len(head) == 8 and struct.unpack(">ii", head)[1] == 7
        except OSError:
            return False

    def stop(self) -> None:
        """Ask the server to end, as a service manager does, and kill it if it does not."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the server at once, as a power cut to the process."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._forget()

    def _forget(self) -> None:
        if self.process is not None:
            _RUNNING.pop(self.process.pid, None)
        self.process = None

    def last_words(self, lines_max: int = 40) -> str:
        """The end of what the server printed."""
        if not self.output_path.exists():
            return ""
        return "\n".join(self.output_path.read_text(errors="replace").splitlines()[-lines_max:])

    def cpu_seconds(self) -> float:
        return process.cpu_seconds(self.pid)

    def resident_bytes(self) -> int:
        return process.resident_bytes(self.pid)

    def __enter__(self) -> Self:
        return self.start() if self.process is None else self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


@atexit.register
def _end_all() -> None:
    for running in list(_RUNNING.values()):
        running.kill()
        running.wait()
