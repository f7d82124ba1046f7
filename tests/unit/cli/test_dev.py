"""`ottla dev` as a newcomer meets it: start, try what it suggests, stop, start again."""

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from ottla.cli.dev import controller_port

ROOT = Path(__file__).parents[3]
START = [sys.executable, "-m", "ottla.cli.main"]


@contextmanager
def dev(data: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running `ottla dev` and what it said."""
    command = [*START, "dev", "--data", str(data), "--port", "0", "--metrics-port", "0", "--no-services", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if line.startswith("Ctrl-C"):
                break
        assert "is ready" in said, process.stderr and process.stderr.read()
        yield process, said
    finally:
        process.kill()
        process.communicate()


def suggested(said: str, what: str) -> str:
    """What comes of a suggestion, followed to the letter."""
    line = re.search(rf"^  {what} +(.+)$", said, re.MULTILINE)
    assert line
    command = ["sh", "-c", line[1]]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout


def output(program: str) -> str:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout


def documented(page: str, kafka: str) -> str:
    """What the Python example of a page prints."""
    code = re.search(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    assert code
    return output(code[1].replace("127.0.0.1:9092", kafka))


def test_what_it_suggests_works_and_stays(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with dev(data) as (process, said):
        assert suggested(said, "write") == ""
        assert suggested(said, "read") == "Hello from Ottla\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    with dev(data, "--flush", "os") as (process, said):
        assert suggested(said, "read") == "Hello from Ottla\n"
        assert suggested(said, "look").startswith("topic        hello\n")
        metrics = re.search(r"metrics +(\S+)", said)
        assert metrics
        with urlopen(metrics[1], timeout=10) as page:
            assert b"kafka_" in page.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0


@pytest.mark.parametrize("page", ["README.md", "docs/guide/first-steps.md"])
def test_the_examples_run(page: str, tmp_path: Path) -> None:
    with dev(tmp_path / "data") as (_, said):
        kafka = re.search(r"Kafka clients +(\S+)", said)
        assert kafka
        assert documented(page, kafka[1]) == "Hello from Ottla\n"


def taken() -> socket.socket:
    """A port that somebody listens on."""
    held = socket.socket()
    held.bind(("127.0.0.1", 0))
    held.listen()
    return held


def test_a_port_for_the_controller_is_found(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with taken() as held:
        # Somebody has the port above.
        port = str(held.getsockname()[1] - 1)
        with dev(data, "--port", port) as (_, said):
            assert suggested(said, "write") == ""
    with dev(data, "--port", port) as (_, said):
        assert suggested(said, "read") == "Hello from Ottla\n"
    assert controller_port(65_535) > 0
    assert controller_port(0) == 0


def test_a_port_for_metrics_that_is_taken_is_done_without(tmp_path: Path) -> None:
    with taken() as held:
        port = held.getsockname()[1]
        with dev(tmp_path / "data", "--metrics-port", str(port)) as (process, said):
            assert "metrics        none: the port is taken" in said
            assert suggested(said, "write") == ""
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=10)
    assert err.splitlines()[:2] == [
        f"warning: port {port} is taken, so there is no metrics page",
        "hint: --metrics-port N chooses another port, and 0 any that is free",
    ]


def test_a_port_for_clients_that_is_taken(tmp_path: Path) -> None:
    with taken() as held:
        command = [*START, "dev", "--data", str(tmp_path / "data"), "--port", str(held.getsockname()[1])]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 1
    assert "choose another one with --port N" in done.stderr


def test_data_that_cannot_be_kept_there(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = subprocess.run(
        [*START, "dev", "--data", str(tmp_path / "file"), "--port", "0", "--metrics-port", "0"],
        capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "hint: choose another directory with --data"


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    with dev(tmp_path / "data"):
        ports = ["--port", "0", "--metrics-port", "0", "--no-services"]
        command = [*START, "dev", "--data", str(tmp_path / "data"), *ports]
        second = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert second.returncode == 1
    assert second.stderr.startswith("error: ")
    assert "in use" in second.stderr
    assert "hint: " in second.stderr
