"""The `ottla` command as a user runs it, with settings of nobody else.

L1  A call runs within this process, on streams of its own, which saves most of a second each time; `run_process` and
    `start` make real processes, for what only those have: signals, pipes that break, warnings on stderr.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ottla.cli.main import main

SECONDS_MAX = 60.0
COMMAND = [sys.executable, "-m", "ottla.cli.main"]


class Outcome:
    """What a command left behind."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code = code
        self.bytes = out
        self.out = out.decode("utf-8", "backslashreplace")
        self.err = err.decode("utf-8", "backslashreplace")

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def jsons(self) -> list[Any]:
        return [json.loads(line) for line in self.lines]

    def __repr__(self) -> str:
        return f"exit {self.code}\n{self.out}\n{self.err}"


class CommandLine:
    """Runs commands against one cluster, in a directory of its own."""

    def __init__(self, bootstrap: str, home: Path) -> None:
        self.home = home
        self.environment: dict[str, str] = {
            **{name: value for name, value in os.environ.items() if not name.startswith("OTTLA_")},
            "OTTLA_BOOTSTRAP": bootstrap,
            "XDG_CONFIG_HOME": str(home / "settings"),
        }

    def __call__(self, *arguments: str, stdin: bytes | str = b"") -> Outcome:
        """Run a command that must succeed."""
        outcome = self.run(*arguments, stdin=stdin)
        assert outcome.code == 0, outcome
        return outcome

    def run(self, *arguments: str, stdin: bytes | str = b"", env: Mapping[str, str] | None = None) -> Outcome:
        """Run to the end, whatever the end is."""
        data = stdin.encode() if isinstance(stdin, str) else stdin
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            given.write(data)
            given.seek(0)
            with self._surroundings(given, out, err, env or {}):
                try:
                    code = main(arguments)
                except SystemExit as left:
                    code = int(left.code or 0)
            out.seek(0)
            err.seek(0)
            return Outcome(code, out.read(), err.read())

    @contextlib.contextmanager
    def _surroundings(self, given: Any, out: Any, err: Any, env: Mapping[str, str]) -> Iterator[None]:
        before, here = dict(os.environ), Path.cwd()
        streams = sys.stdin, sys.stdout, sys.stderr
        # Detached afterwards, so that the files stay open.
        sys.stdin, sys.stdout, sys.stderr = (
            io.TextIOWrapper(each, write_through=True) for each in (given, out, err)
        )
        os.environ.clear()
        os.environ.update({**self.environment, **env})
        os.chdir(self.home)
        try:
            yield
        finally:
            for each in (sys.stdin, sys.stdout, sys.stderr):
                each.detach()
            sys.stdin, sys.stdout, sys.stderr = streams
            os.chdir(here)
            os.environ.clear()
            os.environ.update(before)

    def run_process(self, *arguments: str, stdin: bytes = b"") -> Outcome:
        """Run a process to its end."""
        done = subprocess.run(
            [*COMMAND, *arguments],
            input=stdin,
            capture_output=True,
            check=False,
            timeout=SECONDS_MAX,
            cwd=self.home,
            env=self.environment,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: str, **options: Any) -> "subprocess.Popen[bytes]":
        """Start a process that goes on; whoever starts it ends it."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(
            [*COMMAND, *arguments], cwd=self.home, env=self.environment, **{**pipes, **options}
        )
