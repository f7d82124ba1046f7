"""The environment is lent, and given back."""

import os
from pathlib import Path

import pytest

from ottla.world.shell import is_executable, variable, variables


def test_variables_are_lent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_A", "old")
    monkeypatch.delenv("OTTLA_B", raising=False)
    with variables({"OTTLA_A": "new", "OTTLA_B": "new"}):
        assert (variable("OTTLA_A"), variable("OTTLA_B")) == ("new", "new")
    assert variable("OTTLA_A") == "old"
    assert "OTTLA_B" not in os.environ


def test_what_can_be_run(tmp_path: Path) -> None:
    program = tmp_path / "program"
    assert not is_executable(str(program))
    program.touch(0o644)
    assert not is_executable(str(program))
    program.chmod(0o755)
    assert is_executable(str(program))
    assert not is_executable(str(tmp_path))
