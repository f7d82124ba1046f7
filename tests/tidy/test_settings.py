"""A setting counts as honoured exactly when code reads it."""

import ast

from ottla.metadata.settings.broker import BROKER
from ottla.metadata.settings.honoured import HONOURED_DIRECTLY, HONOURED_TOPIC
from ottla.metadata.settings.topic import SYNONYMS, TOPIC
from tests.tidy.tree import SOURCE, modules, syntax

# Modules that name settings without acting on them.
TABLES = SOURCE / "metadata" / "settings"
# What the roll and retention settings mean is decided in the tables; the node only checks them.
CHECKED_ONLY = {synonym.name for synonyms in SYNONYMS.values() for synonym in synonyms}


def names_read() -> set[str]:
    found: set[str] = set()
    for path in modules():
        if TABLES not in path.parents:
            for node in ast.walk(syntax(path)):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.add(node.value)
    return found


def test_what_is_honoured_is_read() -> None:
    read = names_read()
    assert sorted(HONOURED_DIRECTLY - read) == []
    assert sorted(HONOURED_TOPIC - read) == []


def test_what_is_read_is_honoured() -> None:
    # A name without a dot is an ordinary word.
    read = {each for each in names_read() if "." in each}
    assert sorted((read & BROKER.keys()) - HONOURED_DIRECTLY - CHECKED_ONLY - CHECKED_ELSEWHERE) == []
    assert sorted((read & TOPIC.keys()) - HONOURED_TOPIC - BROKER.keys()) == []


def test_honoured_settings_exist() -> None:
    assert HONOURED_DIRECTLY <= BROKER.keys()
    assert HONOURED_TOPIC <= TOPIC.keys()


# Read so that a contradiction is refused, though the setting itself has no effect.
CHECKED_ELSEWHERE = {"queued.max.request.bytes"}
