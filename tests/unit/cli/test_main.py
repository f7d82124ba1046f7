"""The command line: what it prints, how it fails, and how fast it answers."""

import subprocess
import sys
from pathlib import Path

import pytest

from ottla import __version__
from ottla.cli.error import FAILED, MISUSED, OK
from ottla.cli.main import main

PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0
controller.listener.names=CONTROLLER
"""


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    path.write_text(f"{PROPERTIES}log.dirs={tmp_path / 'data'}\n")
    return path


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == OK
    assert capsys.readouterr().out == f"ottla {__version__}\n"


@pytest.mark.parametrize(
    "arguments", [[], ["fly"], ["dev", "--port", "70000"], ["dev", "--flush", "never"], ["storage"]]
)
def test_misuse_exits_with_two(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == MISUSED
    assert "error:" in capsys.readouterr().err


def test_help_imports_next_to_nothing() -> None:
    code = "import sys; from ottla.cli.main import parser; parser().format_help(); print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = set(out.split())
    own = {each for each in loaded if each.startswith("ottla")}
    assert own <= {"ottla", "ottla.cli", "ottla.cli.error", "ottla.cli.main"}
    assert not loaded & {"asyncio", "uvloop", "dataclasses", "ssl", "crc32c", "zstandard"}


def test_an_unknown_setting_stops_the_server(properties: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["server", str(properties), "--override", "num.partition=3"]) == MISUSED
    assert capsys.readouterr().err.splitlines() == [
        "error: Unknown setting num.partition=3",
        "allowed: the broker settings of Apache Kafka, and those that begin with ottla.",
        "hint: did you mean num.partitions?",
    ]


def test_a_bad_value_stops_the_server(properties: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["server", str(properties), "--override", "num.partitions=many"]) == MISUSED
    assert capsys.readouterr().err.splitlines() == [
        "error: Invalid value many for configuration num.partitions: Not a number of type INT",
        "allowed: a 32-bit integer, [1,...]",
        "hint: docs/reference/settings.md describes num.partitions",
    ]


@pytest.mark.parametrize("override", ["num.partitions", "=3", ""])
def test_an_override_is_a_pair(override: str, properties: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["server", str(properties), "--override", override]) == MISUSED
    assert "is not key=value" in capsys.readouterr().err


def test_a_missing_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["server", str(tmp_path / "none.properties")]) == MISUSED
    assert "there is no file" in capsys.readouterr().err


def test_a_broken_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "server.properties"
    path.write_text("a=\\u12")
    assert main(["server", str(path)]) == MISUSED
    assert f"error: {path}: " in capsys.readouterr().err


def test_a_directory_is_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["server", str(tmp_path)]) == FAILED
    assert capsys.readouterr().err.startswith("error: ")
