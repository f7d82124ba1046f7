"""`ottla cluster start`: what it says, and when."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

START = [sys.executable, "-m", "ottla.cli.main", "cluster", "start"]
SECONDS_MAX = 60.0


@pytest.fixture
def port() -> Iterator[int]:
    """The first of as many ports as a cluster of one needs, both taken."""
    with ExitStack() as stack:
        while True:
            first = stack.enter_context(closing(socket.socket()))
            first.bind(("127.0.0.1", 0))
            first.listen()
            number = int(first.getsockname()[1])
            if number < 65_000:
                break
        yield number


def test_it_does_not_greet_for_nodes_that_do_not_serve(tmp_path: Path, port: int) -> None:
    command = [*START, "--nodes", "1", "--data", str(tmp_path / "data"), "--port", str(port)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS_MAX)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "cannot listen" in done.stderr and "node 1 ended with 1" in done.stderr


def test_it_greets_once_its_nodes_serve(tmp_path: Path, port: int) -> None:
    port += 1 if port < 60_000 else -5
    command = [*START, "--nodes", "1", "--data", str(tmp_path / "data"), "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Ottla ")
        said = [process.stdout.readline() for _ in range(6)]
        assert f"  Kafka clients  127.0.0.1:{port}\n" in said
        with socket.create_connection(("127.0.0.1", port), timeout=10):
            pass
        # A cluster of one does not go on without it.
        assert said[-1] == "Ctrl-C stops it; the data stays.\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS_MAX) == 0
    finally:
        # Its nodes are processes of their own, which it stops; killed, it would leave them behind.
        process.terminate()
        process.communicate(timeout=SECONDS_MAX)
