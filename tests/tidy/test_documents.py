"""Every command and setting is documented, and what the documents say exists."""

import re
import runpy
import shlex
from itertools import takewhile
from pathlib import Path

import pytest

from ottla.cli.syntax.root import parser
from tests.tidy.tree import ROOT, name, ours

DOCUMENTS = [path for path in ours() if path.suffix == ".md"]
GENERATED = runpy.run_path(str(ROOT / "docs" / "generate.py"))["PAGES"]
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
# Fenced blocks that are meant for a shell.
SHELL = re.compile(r"^```(?:sh|bash|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", GENERATED)
def test_the_reference_is_up_to_date(page: str) -> None:
    written = (ROOT / "docs" / "reference" / page).read_text(encoding="utf-8")
    assert written == GENERATED[page](), "run: make docs"


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_links_lead_somewhere(path: Path) -> None:
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"", text):
        link = (target[0] or target[1]).partition("#")[0]
        if link and "://" not in link:
            assert (path.parent / link).exists(), link


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_commands_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    lines = [line.strip() for block in SHELL.findall(text) for line in block.splitlines()]
    spans = re.findall(r"`((?:make|ottla) [^`]+)`", text)
    for line in [*lines, *spans]:
        # A command ends where the shell goes on to another.
        words = list(
            takewhile(lambda word: word not in {"|", "<", ">", "#"}, _words(line.removeprefix("$ ")))
        )
        if words[:1] == ["make"]:
            assert set(re.findall(r"^[a-z]+$", words[1], re.MULTILINE)) <= TARGETS, line
        elif words[:1] == ["ottla"] and line in lines:
            parser().parse_args(words[1:])


def _words(line: str) -> list[str]:
    """The words of a line as a shell reads them; in prose a quote may be an apostrophe."""
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def test_the_readme_has_what_a_newcomer_needs() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for needed in ("make run", "make test", "docs/", "ARCHITECTURE.md", "CHANGELOG.md", ".svg"):
        assert needed in text


def test_no_two_decisions_share_a_number() -> None:
    numbers = [path.name[:4] for path in (ROOT / "docs" / "adr").glob("*.md")]
    assert len(set(numbers)) == len(numbers)
    assert all(number.isdigit() for number in numbers)
