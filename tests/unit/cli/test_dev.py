"""`ottla dev` as a newcomer meets it: start, try what it suggests, stop, start again."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

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


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    with dev(tmp_path / "data"):
        ports = ["--port", "0", "--metrics-port", "0", "--no-services"]
        command = [*START, "dev", "--data", str(tmp_path / "data"), *ports]
        second = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert second.returncode == 1
    assert second.stderr.startswith("error: ")
    assert "in use" in second.stderr
    assert "hint: " in second.stderr
