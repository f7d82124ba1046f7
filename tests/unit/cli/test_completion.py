"""Completion: which words come next, and what a real shell makes of the script."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.cli.completion.scripts import SCRIPTS
from ottla.cli.completion.words import FILES, candidates, split_line


def words(*line: str) -> list[str]:
    return [word for word, _ in candidates(line)]


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No profile of the user's, and no cluster."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("OTTLA_BOOTSTRAP", "127.0.0.1:1")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (("to",), ["topic"]),
        (("topic", "de"), ["describe", "delete"]),
        (("-o", "json", "topic", "cr"), ["create"]),
        (("-o", ""), ["table", "json", "yaml"]),
        (("topic", "list", "--output=j"), ["--output=json"]),
        (("topic", "create", "--if"), ["--if-not-exists"]),
        (("completion", ""), ["bash", "zsh", "fish"]),
        (("dump-log", ""), [FILES]),
        (("produce", "orders", "--file", ""), [FILES]),
        (("server", "x"), [FILES]),
        (("perf", "produce", "t", "--acks", ""), ["0", "1", "all"]),
        (("topic", "nonsense", ""), []),
        (("topic", "create", "--", "--if"), []),
        (("topic", "describe", ""), []),
    ],
)
def test_what_comes_next(line: tuple[str, ...], expected: list[str]) -> None:
    assert words(*line) == expected


def test_every_option_has_its_long_name_and_a_meaning() -> None:
    found = dict(candidates(["consume", "-"]))
    assert "--from" in found and "-f" not in found
    assert found["--from"].startswith("where to begin")
    assert all(found.values())
    assert not any("%(default)" in meaning for meaning in found.values())


def test_profiles_are_known_without_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "ottla").mkdir()
    (tmp_path / "ottla" / "config.toml").write_text("[profiles.near]\n[profiles.far]\n")
    assert words("profile", "use", "") == ["far", "near"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ottla topic de", ["ottla", "topic", "de"]),
        ("ottla  topic ", ["ottla", "topic", ""]),
        ("ottla produce t 'a b' -", ["ottla", "produce", "t", "a b", "-"]),
        ("ottla produce t 'a b", ["ottla", "produce", "t", "a b"]),
        ("ottla produce t \"it's ", ["ottla", "produce", "t", "it's "]),
        ("ottla produce t it\\'s x", ["ottla", "produce", "t", "it's", "x"]),
    ],
)
def test_a_line_is_cut_as_a_shell_cuts_it(line: str, expected: list[str]) -> None:
    assert split_line(line) == expected


def test_bash(tmp_path: Path) -> None:
    """What bash offers, and where it puts it: it cuts words at = by itself."""
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    (tmp_path / "ottla").write_text(f'#!/bin/sh\nexec {sys.executable} -m ottla.cli.main "$@"\n')
    (tmp_path / "ottla").chmod(0o755)
    script = (
        SCRIPTS["bash"]
        + r"""
ask() {
    COMP_LINE="$1" COMP_POINT=${#1}; shift
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _ottla
    echo "${COMPREPLY[@]}"
}
ask 'ottla topic de' ottla topic de
ask 'ottla -o ' ottla -o ''
ask 'ottla topic list --output=j' ottla topic list --output = j
ask 'ottla topic list --output=' ottla topic list --output =
"""
    )
    command = ["bash", "--norc", "-c", script]
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=path, timeout=30)
    assert done.stdout.splitlines() == ["describe delete", "table json yaml", "json", "table json yaml"]
    assert not done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_sound(shell: str, tmp_path: Path) -> None:
    """Each shell finds nothing wrong with its script."""
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    path = tmp_path / "script"
    path.write_text(SCRIPTS[shell])
    subprocess.run([found, "-n", str(path)], check=True, capture_output=True, timeout=30)
