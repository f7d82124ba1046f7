"""Packages import only the packages below them, and touch the outside world through one interface."""

import ast
import tomllib
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT, SOURCE, modules, name, package_of, syntax

# These think, and do nothing else.
PURE = {
    "wire", "raft", "metadata", "controller", "groups", "transactions", "share", "replicated", "security",
}  # fmt: skip
IMPURE_MODULES = {"asyncio", "socket", "os", "time", "random", "threading", "logging", "secrets"}
# These are for `world` alone.
WORLDLY_MODULES = {"socket", "os", "time", "random", "threading", "mmap"}


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").partition(".")[0])
    return found


def test_the_layers_name_every_package() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    assert contract["exhaustive"]
    named = {each.strip() for layer in contract["layers"] for each in layer.split("|")}
    built = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert built == {each for each in named if not each.startswith("(")}, (
        "a package is built when its brackets are gone"
    )


@pytest.mark.parametrize("path", [path for path in modules() if path.parent != SOURCE], ids=name)
def test_purity(path: Path) -> None:
    forbidden: set[str] = set()
    if package_of(path) in PURE:
        forbidden = IMPURE_MODULES | WORLDLY_MODULES
    elif package_of(path) != "world":
        forbidden = WORLDLY_MODULES
    assert not imports(path) & forbidden
