"""A setting of a client counts as honoured exactly when that client's code, or what all clients share, reads it."""

import ast
from pathlib import Path

import pytest

from ottla.client.settings.honoured import HONOURED
from ottla.client.settings.resolve import OWN, TABLES
from tests.tidy.tree import SOURCE, syntax

CLIENT = SOURCE / "client"
# Whose code a client is, beside what lies in the package itself.
FOLDERS = {"producer": "producer", "consumer": "consumer", "share": "consumer", "admin": "admin"}
# These hand names around without acting on them.
NAMING = {CLIENT / "serializer.py"}
# Acted upon where settings are resolved, before there is a client.
AT_ONCE = {"security.protocol"}
# Two settings of a pause are read by what their names have in common.
ENDINGS = (".ms", ".max.ms")


def texts(paths: list[Path]) -> set[str]:
    found = {
        node.value
        for path in paths
        if path not in NAMING
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return found | {stem + ending for stem in found if "." in stem for ending in ENDINGS}


def code(kind: str) -> list[Path]:
    return [*CLIENT.glob("*.py"), *(CLIENT / FOLDERS[kind]).rglob("*.py")]


def is_of_shares(path: Path) -> bool:
    return "share" in str(path.relative_to(CLIENT))


@pytest.mark.parametrize("kind", FOLDERS)
def test_what_is_honoured_is_read(kind: str) -> None:
    assert sorted(HONOURED[kind] - texts(code(kind)) - AT_ONCE) == [], "honoured.py says more than is true"


@pytest.mark.parametrize("kind", FOLDERS)
def test_what_is_read_is_honoured(kind: str) -> None:
    paths = code(kind)
    # Two kinds of consumers live in one folder, and what only one of them reads is told by its path.
    if kind == "share":
        paths = [path for path in paths if path.parent == CLIENT or is_of_shares(path)]
    elif kind == "consumer":
        paths = [path for path in paths if not is_of_shares(path)]
    # A name without a dot is an ordinary word.
    read = {text for text in texts(paths) if "." in text}
    named = TABLES[kind].keys() | OWN.get(kind, frozenset())
    assert sorted((read & named) - HONOURED[kind]) == [], "honoured.py lacks it"
