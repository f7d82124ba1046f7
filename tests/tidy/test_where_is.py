"""The newcomer's map names files and symbols that are there."""

import ast
import re

import pytest

from tests.tidy.tree import ROOT, SOURCE, syntax

PAGE = ROOT / "docs" / "where-is.md"
# A question, an answer, a file, and the names in it.
ROW = re.compile(r"^\| ([^|]+\?) \| ([^|]+) \| `([^`|]+)` \| ([^|]+) \|$", re.MULTILINE)
ROWS = ROW.findall(PAGE.read_text(encoding="utf-8"))
QUESTIONS_MIN = 30
WORDS_MAX = 20


def names_in(body: list[ast.stmt], before: str = "") -> set[str]:
    """What a module or class defines: functions, classes with their methods, and constants."""
    found = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(before + node.name)
        if isinstance(node, ast.ClassDef):
            found |= names_in(node.body, f"{before}{node.name}.")
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        found |= {before + target.id for target in targets if isinstance(target, ast.Name)}
    return found


def test_every_line_of_a_table_is_a_row() -> None:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    assert len([line for line in lines if not re.match(r"\| (Question|---) ", line)]) == len(ROWS)
    assert len(ROWS) >= QUESTIONS_MIN
    assert len({question for question, *_ in ROWS}) == len(ROWS)


@pytest.mark.parametrize(("question", "answer", "file", "symbols"), ROWS, ids=[row[0] for row in ROWS])
def test_what_the_map_names_is_there(question: str, answer: str, file: str, symbols: str) -> None:
    assert len(answer.split()) <= WORDS_MAX, question
    path = SOURCE / file
    assert path.is_file(), f"{question} {file} has moved: say in docs/where-is.md where to"
    named = re.findall(r"`([^`]+)`", symbols)
    assert named
    missing = set(named) - names_in(syntax(path).body)
    assert not missing, f"{question} {file} has no {', '.join(sorted(missing))}"
