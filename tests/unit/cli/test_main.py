"""The command line: what it prints, how it fails, and how fast it answers."""

import argparse
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla import __version__
from ottla.cli.error import FAILED, MISUSED, OK
from ottla.cli.main import main
from ottla.cli.syntax.foreign import KAFKA
from ottla.cli.syntax.root import parser

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


# What takes its time to import, and what would drag it in.
SLOW = {
    "asyncio", "concurrent.futures", "crc32c", "ctypes", "dataclasses", "datetime", "difflib", "inspect", "json",
    "logging", "ssl", "tomllib", "typing_extensions", "uvloop", "zstandard",
}  # fmt: skip


def imported(*arguments: str) -> set[str]:
    """The modules that a command line has imported when it is answered."""
    code = (
        "import sys; from ottla.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print(); print('modules', *sys.modules)"
    )
    command = [sys.executable, "-c", code, *arguments]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return set(out.rpartition("modules ")[2].split())


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("topic", "create", "--help"),
        ("consume", "--help"),
        ("completion", "bash"),
        ("__complete", "topic", "cr"),
        ("__complete", "consume", "--"),
        ("__complete", "-o", ""),
    ],
    ids=" ".join,
)
def test_help_and_completion_import_next_to_nothing(arguments: tuple[str, ...]) -> None:
    loaded = imported(*arguments)
    own = {each for each in loaded if each.startswith("ottla.") and not each.startswith("ottla.cli")}
    assert not own
    assert not loaded & SLOW
    # Only the words of the command that is named are read.
    words = {each for each in loaded if each.startswith("ottla.cli.syntax.")}
    assert words <= {
        f"ottla.cli.syntax.{each}" for each in ("root", "parser", "kinds", "topic", "consume", "completion")
    }


def every_command(this: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    below = [each for each in this._actions if isinstance(each, argparse._SubParsersAction)]
    if not below:
        yield this
    for each in below:
        for child in each.choices.values():
            yield from every_command(child)


@pytest.mark.parametrize("command", list(every_command(parser())), ids=lambda command: command.prog)
def test_every_command_can_be_run_and_explained(command: argparse.ArgumentParser) -> None:
    module, _, function = command.get_default("run").partition(":")
    assert callable(getattr(importlib.import_module(module), function))
    assert command.format_help()
    for each in command._actions:
        assert each.help, f"{command.prog} does not say what {each.dest} is"


@pytest.mark.parametrize(
    ("line", "names"),
    [
        (
            "produce t -f hex 00 -v 01",
            {"topic": "t", "values": ["00", "01"], "format": "hex", "verbose": True},
        ),
        ("topic describe a -o json b", {"topics": ["a", "b"], "output": "json"}),
        (
            "-o yaml -X a=1 topic list x -X b=2",
            {"patterns": ["x"], "output": "yaml", "first_settings": ["a=1"]},
        ),
        ("consume a -n 3", {"topics": ["a"], "count": 3}),
        ("config describe topic/a x --all y", {"resource": "topic/a", "keys": ["x", "y"]}),
        ("produce t -- -v", {"values": ["-v"], "verbose": False}),
        ("group reset g --shift -5", {"shift": -5}),
        ("consume a --from -5", {"begin": "-5"}),
    ],
)
def test_names_stand_before_between_and_behind_options(line: str, names: dict[str, object]) -> None:
    options = vars(parser().parse_args(line.split()))
    assert {name: options[name] for name in names} == names


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("topic list --bootstrap-server localhost:1", "did you mean -b?"),
        ("topic list --bootstrap-server=localhost:1", "did you mean -b?"),
        ("topic create x --replication-factor 3", "did you mean --replication?"),
        ("consume x --from-beginning", "did you mean --from start?"),
        ("consume --topic x", "it stands without an option: ottla consume TOPIC"),
        ("produce --topic x", "it stands without an option: ottla produce TOPIC"),
        ("topic --create --topic x", "did you mean ottla topic create?"),
        ("--bootstrap-server x topic list", "did you mean -b?"),
        ("consume x --counts 3", "did you mean --count?"),
        ("consume x --zzz", "ottla consume --help"),
        ("consume x -y", "ottla consume --help"),
        ("group list -y", "ottla group list --help"),
        ("perf produce x --num-records 3", "did you mean --records?"),
    ],
)
def test_an_option_that_is_not_there(line: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(line.split())
    assert left.value.code == MISUSED
    assert capsys.readouterr().err.splitlines()[-1] == f"hint: {hint}"


def test_every_option_that_is_named_instead_is_one() -> None:
    known = {
        name
        for command in every_command(parser())
        for each in command._actions
        for name in each.option_strings
    }
    assert {each.split()[0] for options in KAFKA.values() for each in options} <= known


def test_one_partition_or_several_by_either_name() -> None:
    read = parser().parse_args
    assert read(["produce", "t", "--partitions", "2"]).partition == 2
    assert read(["consume", "t", "--partition", "2"]).partitions == [2]


def test_a_value_may_look_like_an_option() -> None:
    assert parser().parse_args(["produce", "t", "-K", " -- ", "--", "--x"]).values == ["--x"]


def test_a_setting_that_nobody_has_is_not_described_anywhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topic", "list", "-X", "foo.bar=1"]) == MISUSED
    assert (
        capsys.readouterr().err.splitlines()[-1]
        == "hint: docs/reference/client-settings.md lists all there are"
    )


def test_a_name_that_no_topic_can_have(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["produce", "bad topic", "v"]) == MISUSED
    assert "'bad topic' contains one or more characters other than" in capsys.readouterr().err


def test_what_is_almost_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["topci", "list"])
    assert capsys.readouterr().err.splitlines()[-1] == "hint: did you mean topic?"


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
