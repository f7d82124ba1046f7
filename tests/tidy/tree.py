"""The files that tidiness is asked of."""

import ast
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "ottla"


def modules() -> list[Path]:
    """Every module of the package."""
    return sorted(SOURCE.rglob("*.py"))


@cache
def syntax(path: Path) -> ast.Module:
    """A module, parsed."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def name(path: Path) -> str:
    """A path as the messages show it."""
    return str(path.relative_to(ROOT))


def package_of(path: Path) -> str:
    """The package that a module belongs to."""
    return path.relative_to(SOURCE).parts[0]


@cache
def ours() -> list[Path]:
    """Every file that is ours: what git tracks or would track."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=False).stdout.decode()
    paths = [ROOT / each for each in listed.split("\0") if each]
    if not paths:  # a source archive has no git
        skipped = {".venv", ".git", "ottla-data", "__pycache__"}
        paths = [path for path in ROOT.rglob("*") if not skipped & set(path.relative_to(ROOT).parts)]
    return [path for path in paths if path.is_file()]


def texts() -> list[tuple[Path, str]]:
    """Every file of ours that is text, with its text."""
    found = []
    for path in ours():
        try:
            found.append((path, path.read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue
    return found
