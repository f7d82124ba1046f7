"""A one-node Ottla in a process of its own, on a directory that vanishes with it.

T1  `start` returns when clients are served, or raises BrokerFailed with what the process last said.
T2  The process ends with this one, however this one ends: it hears of it by the end of its standard input.
T3  A restart keeps the port and the data.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from types import TracebackType
from typing import Self

_STOP_SECONDS_MAX = 10.0


class BrokerFailed(Exception):
    """The broker could not start. The message says why."""


class Broker:
    """A broker for tests: `with Broker() as broker:`.

    `settings` are those of the broker: `Broker({"num.partitions": "3"})`. Its files are in a temporary directory, or in
    `data`, which is kept. By default a write is acknowledged when the operating system has it (`ottla.flush=os`).
    """

    def __init__(self, settings: Mapping[str, str] | None = None, *, data: str | None = None) -> None:
        self._settings = {"ottla.flush": "os", **(settings or {})}
        self._data = data
        self._own: str | None = None
        self._process: subprocess.Popen[str] | None = None
        self._port = 0
        self.metrics = ""

    @property
    def bootstrap(self) -> str:
        """The address for clients (bootstrap.servers)."""
        if not self._port:
            raise BrokerFailed("the broker was not started: use it in a with statement, or call start()")
        return f"127.0.0.1:{self._port}"

    @property
    def data(self) -> str:
        """The directory of its files."""
        if self._data is not None:
            return self._data
        if self._own is None:
            self._own = tempfile.mkdtemp(prefix="ottla-")
        return self._own

    @property
    def pid(self) -> int:
        """The id of its process."""
        if self._process is None:
            raise BrokerFailed("the broker is not running")
        return self._process.pid

    def start(self) -> Self:
        """Start the broker, and return when it serves clients."""
        if self._process is not None:
            return self
        pairs = [f"{name}={value}" for name, value in self._settings.items()]
        command = [sys.executable, "-m", "ottla.testing.process", self.data, str(self._port), *pairs]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            process, self._process = self._process, None
            _, words = process.communicate()
            raise BrokerFailed(f"the broker did not start:\n{words.strip()}")
        ready = json.loads(line)
        self._port, self.metrics = ready["port"], ready["metrics"]
        return self

    def stop(self) -> None:
        """Stop the broker with SIGTERM. Its files stay."""
        if self._process is not None:
            self._process.terminate()
            self._end()

    def kill(self) -> None:
        """Kill the broker with SIGKILL. Its files stay."""
        if self._process is not None:
            self._process.kill()
            self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        assert process is not None
        try:
            process.communicate(timeout=_STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()

    def restart(self) -> Self:
        """Stop the broker, and start it again with the same port and files."""
        self.stop()
        return self.start()

    def close(self) -> None:
        """Stop the broker, and remove its files unless `data` was given."""
        self.stop()
        if self._own is not None:
            shutil.rmtree(self._own, ignore_errors=True)
            self._own = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
