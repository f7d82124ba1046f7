"""Each message that the page about troubles quotes is still said somewhere, and each that stops a start is quoted."""

import ast
import re

import pytest

from ottla.wire.errors import ErrorCode
from tests.tidy.tree import ROOT, SOURCE, modules, name, syntax

PAGE = ROOT / "docs" / "troubleshooting.md"
GAP = "…"
TEXT = PAGE.read_text(encoding="utf-8")
# The first cell of a row in the tables of messages: code, and nothing beside it.
QUOTED = re.findall(r"^\| `([^`]+)` \| [^|]+ \| [^|]+ \|$", TEXT, re.MULTILINE)
CODES = re.findall(r"^\| (\d+) \| `(\w+)` \| (yes|no) \|", TEXT, re.MULTILINE)
# Rooms whose messages no user of a node or of the client sees.
ELSEWHERE = {"sim", "testing", "streams", "spark"}


def said(node: ast.AST) -> str | None:
    """The text of an expression, with a gap for what is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.sub(r"%(?:\.\d+)?[rsd]", GAP, node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(said(part) or GAP for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = said(node.left), said(node.right)
        return None if parts == (None, None) else "".join(part or GAP for part in parts)
    return None


def messages() -> list[str]:
    """Every text in the source that has more than one word."""
    found = []
    for path in modules():
        if path.relative_to(SOURCE).parts[0] not in ELSEWHERE:
            found += [text for node in ast.walk(syntax(path)) if (text := said(node)) and " " in text]
    return found


MESSAGES = messages()


def matches(quoted: str, message: str) -> bool:
    """Whether a message can be what is quoted: the same words, and gaps where either of them has some."""
    parts = re.split(f"(?:{GAP})+", quoted)
    if max(parts, key=len) not in message:
        return False
    return re.fullmatch("(?s:.*)".join(map(re.escape, parts)), message) is not None


def test_there_are_messages() -> None:
    lines = [line for line in TEXT.splitlines() if line.startswith("| ")]
    heads = [line for line in lines if re.match(r"\| (Message|Code|---) ", line)]
    assert len(lines) == len(heads) + len(QUOTED) + len(CODES)
    assert len(QUOTED) > 50
    assert len(set(QUOTED)) == len(QUOTED)


@pytest.mark.parametrize("quoted", QUOTED)
def test_what_is_quoted_is_still_said(quoted: str) -> None:
    assert any(matches(quoted, message) for message in MESSAGES), "no text of the source reads like this"


@pytest.mark.parametrize(("number", "code", "again"), CODES)
def test_codes_have_their_numbers(number: str, code: str, again: str) -> None:
    assert ErrorCode[code] == int(number)
    assert ErrorCode[code].retriable == (again == "yes")


def test_whatever_stops_a_start_is_explained() -> None:
    for path in modules():
        for node in ast.walk(syntax(path)):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "StartError"
            ):
                text = said(node.args[0])
                if text is not None and " " in text:
                    assert any(matches(quoted, text) for quoted in QUOTED), f"{name(path)}: {text}"
