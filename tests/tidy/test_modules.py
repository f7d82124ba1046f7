"""Modules are small, say what they are, and are called by what they are."""

import ast
import re
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT, SOURCE, modules, name, syntax, texts

LINES_MAX = 450
# Longer ones, each with the reason why it stays whole.
LONG: dict[str, str] = {}

EMPTY_NAMES = {
    "util",
    "utils",
    "helper",
    "helpers",
    "common",
    "core",
    "base",
    "misc",
    "manager",
    "impl",
    "stuff",
}


@pytest.mark.parametrize("path", modules(), ids=name)
def test_a_module_says_what_it_is(path: Path) -> None:
    doc = ast.get_docstring(syntax(path))
    assert doc, "no docstring at its head"
    assert doc.split("\n\n")[0].rstrip().endswith((".", ":", ";")), (
        "the docstring does not begin with a sentence"
    )


@pytest.mark.parametrize("path", modules(), ids=name)
def test_a_module_fits_in_the_head(path: Path) -> None:
    count = len(path.read_text().splitlines())
    assert count <= LINES_MAX or name(path) in LONG, f"{count} lines: it hides a second noun"


def test_no_long_module_is_excused_for_nothing() -> None:
    for path, reason in LONG.items():
        assert reason
        assert len((SOURCE.parents[1] / path).read_text().splitlines()) > LINES_MAX, path


@pytest.mark.parametrize("path", modules(), ids=name)
def test_a_name_says_something(path: Path) -> None:
    words = set(re.split(r"[_/]", str(path.relative_to(SOURCE).with_suffix("")).lower()))
    assert not words & EMPTY_NAMES
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            parts = {part.lower() for part in re.findall(r"[A-Z]?[a-z]+", node.name)}
            assert not parts & {"util", "utils", "helper", "helpers", "misc", "impl", "manager"}, node.name


def test_nothing_depends_on_where_it_was_written() -> None:
    place = re.compile(r"/(?:root|home|Users)/\w+|" + re.escape(str(ROOT)))
    guilty = [
        f"{name(path)}: {found[0]}"
        for path, text in texts()
        if path != Path(__file__) and (found := place.search(text))
    ]
    assert not guilty


def test_nothing_is_left_to_do() -> None:
    words = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|X" + r"XX)\b")
    guilty = [name(path) for path, text in texts() if path.suffix == ".py" and words.search(text)]
    assert not guilty
