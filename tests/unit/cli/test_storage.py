"""`ottla storage`: ids, formatting, and what is said about directories."""

import re
from pathlib import Path

import pytest

from ottla.cli.error import FAILED, MISUSED, OK
from ottla.cli.main import main

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
OTHER = "4L6g3nShT-eMCtK--X86sw"
PROPERTIES = """
process.roles=broker,controller
node.id=7
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
controller.listener.names=CONTROLLER
"""

Printed = pytest.CaptureFixture[str]


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    path.write_text(
        f"{PROPERTIES}controller.quorum.bootstrap.servers=127.0.0.1:9093\n"
        f"log.dirs={tmp_path}/one,{tmp_path}/two\nmetadata.log.dir={tmp_path}/meta\n"
    )
    return path


def storage(action: str, properties: Path, *options: str) -> int:
    return main(["storage", action, "--config", str(properties), *options])


def test_random_uuid(capsys: Printed) -> None:
    assert main(["storage", "random-uuid"]) == OK
    assert re.fullmatch(r"[\w][\w-]{21}\n", capsys.readouterr().out)


def test_format_then_info(properties: Path, tmp_path: Path, capsys: Printed) -> None:
    assert storage("info", properties) == FAILED
    assert capsys.readouterr().out.count("does not exist") == 3

    assert storage("format", properties, "-t", CLUSTER, "--standalone") == OK
    assert "Formatting dynamic metadata voter directory" in capsys.readouterr().out
    for name in ("one", "two", "meta"):
        assert f"cluster.id={CLUSTER}" in (tmp_path / name / "meta.properties").read_text()
    assert (tmp_path / "meta" / "__cluster_metadata-0").is_dir()
    assert not (tmp_path / "one" / "__cluster_metadata-0").exists()

    assert storage("info", properties) == OK
    out = capsys.readouterr().out
    assert out.count(f"cluster {CLUSTER}, node 7, directory ") == 3


def test_formatting_twice_takes_a_word_more(properties: Path, capsys: Printed) -> None:
    assert storage("format", properties, "-t", CLUSTER, "--standalone") == OK
    assert storage("format", properties, "-t", CLUSTER, "--standalone") == FAILED
    assert "already formatted" in capsys.readouterr().err
    assert storage("format", properties, "-t", CLUSTER, "--standalone", "--ignore-formatted") == OK
    assert storage("format", properties, "-t", OTHER, "--standalone", "--ignore-formatted") == FAILED


def test_info_names_strangers(properties: Path, tmp_path: Path, capsys: Printed) -> None:
    assert storage("format", properties, "-t", CLUSTER, "--standalone") == OK
    stranger = tmp_path / "one" / "meta.properties"
    stranger.write_text(stranger.read_text().replace(CLUSTER, OTHER).replace("node.id=7", "node.id=8"))
    (tmp_path / "two" / "meta.properties").unlink()
    capsys.readouterr()
    assert storage("info", properties) == FAILED
    out = capsys.readouterr().out
    for words in ("different clusters", "another node than 7", "two is not formatted"):
        assert words in out


def test_who_votes_must_be_said_once(properties: Path, capsys: Printed) -> None:
    assert storage("format", properties, "-t", CLUSTER) == MISUSED
    assert "hint: --standalone" in capsys.readouterr().err
    text = properties.read_text()
    properties.write_text(text.replace("bootstrap.servers=", "voters=7@"))
    assert storage("format", properties, "-t", CLUSTER, "--standalone") == MISUSED
    assert storage("format", properties, "-t", CLUSTER) == OK


def test_initial_controllers(properties: Path, tmp_path: Path) -> None:
    voters = f"7@127.0.0.1:9093:{OTHER}"
    assert storage("format", properties, "-t", CLUSTER, "--initial-controllers", voters) == OK
    assert f"directory.id={OTHER}" in (tmp_path / "meta" / "meta.properties").read_text()


@pytest.mark.parametrize("voters", ["7", "7@host:9093", "7@host:9093:short", "x@host:9093:" + OTHER])
def test_refused_initial_controllers(voters: str, properties: Path, capsys: Printed) -> None:
    assert storage("format", properties, "-t", CLUSTER, "--initial-controllers", voters) == MISUSED
    assert "id@host:port:directory-id" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--feature", "metadata.version=29"), OK),
        (("--release-version", "4.1"), OK),
        (("--feature", "metadata.version"), MISUSED),
        (("--feature", "metadata.version=99999"), MISUSED),
        (("--feature", "metadata.version=9999"), FAILED),
        (("--feature", "colour.version=1"), FAILED),
        (("--release-version", "1.0"), MISUSED),
    ],
)
def test_features(options: tuple[str, ...], code: int, properties: Path) -> None:
    assert storage("format", properties, "-t", CLUSTER, "--standalone", *options) == code


def test_what_is_formatted_for_another_cluster_says_a_way_out(properties: Path, capsys: Printed) -> None:
    # As with Kafka an id may be any text.
    assert storage("format", properties, "-t", "notauuid", "--standalone") == OK
    assert storage("format", properties, "-t", CLUSTER, "--standalone", "--ignore-formatted") == FAILED
    assert "hint: it is of the cluster notauuid" in capsys.readouterr().err
    assert storage("format", properties, "-t", "notauuid", "--standalone") == FAILED
    assert "hint: to begin anew, remove the directory" in capsys.readouterr().err
