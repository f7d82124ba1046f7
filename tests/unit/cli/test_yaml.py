"""YAML: what is written reads back as the same, by a reader that knows the block style and nothing of the writer."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.output.yaml import yaml


class Reader:
    """Block mappings and lists by their indentation, and scalars as YAML 1.1 and 1.2 both take them."""

    def __init__(self, text: str) -> None:
        self.lines = [(len(line) - len(line.lstrip(" ")), line.lstrip(" ")) for line in text.split("\n")[:-1]]

    def document(self) -> Any:
        value = self.block(0)
        assert not self.lines, self.lines
        return value

    def block(self, indent: int) -> Any:
        found, text = self.lines[0]
        assert found == indent
        if text.startswith("- "):
            items = []
            while self.lines and self.lines[0][0] == indent and self.lines[0][1].startswith("- "):
                # What stands behind the dash begins a block of its own, two to the right.
                self.lines[0] = (indent + 2, self.lines[0][1][2:])
                items.append(self.block(indent + 2))
            return items
        if self.key(text) is None:
            self.lines.pop(0)
            return scalar(text)
        mapping = {}
        while self.lines and self.lines[0][0] == indent and not self.lines[0][1].startswith("- "):
            key = self.key(self.lines[0][1])
            assert key is not None
            _, text = self.lines.pop(0)
            rest = text[len(key) + 1 :]
            name = scalar(key)
            assert isinstance(name, str)
            mapping[name] = scalar(rest[1:]) if rest else self.block(indent + 2)
        return mapping

    @staticmethod
    def key(text: str) -> str | None:
        match = re.match(r'("(?:[^"\\]|\\.)*"|[^"\s][^:]*):(?= |$)', text)
        return match[1] if match else None


def scalar(text: str) -> Any:
    if text.startswith('"'):
        return json.loads(text)
    if text in ("{}", "[]"):
        return json.loads(text)
    if text.lower() in ("true", "false", "yes", "no", "on", "off", "y", "n"):
        return text.lower() in ("true", "yes", "on", "y")
    if text.lower() in ("null", "~", ""):
        return None
    if re.fullmatch(r"[-+]?\d+", text):
        return int(text)
    if re.fullmatch(r"[-+]?(\d+\.\d*|\.\d+)([eE][-+]?\d+)?", text):
        return float(text)
    assert not re.match(r"[-+.\d!&*\[\]{}|>@`%#?,'\"]", text), f"{text} may be read as something else"
    assert ": " not in text and " #" not in text
    return text


data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(data)
def test_what_is_written_reads_back(value: Any) -> None:
    assert Reader(yaml(value)).document() == value


@pytest.mark.parametrize(
    "word",
    ["yes", "No", "on", "null", "~", "1.0", "0x10", "1:30", "2026-10-09", "=", "<<", "- a", "a: b", "a #b"],
)
def test_what_could_be_something_else_is_quoted(word: str) -> None:
    assert yaml(word) == json.dumps(word) + "\n"


@pytest.mark.parametrize("word", ["orders", "cleanup.policy", "PreparingRebalance", "a b", "host-1/x"])
def test_plain_words_are_not(word: str) -> None:
    assert yaml(word) == word + "\n"


def test_how_it_looks() -> None:
    topic = {
        "name": "orders",
        "partitions": [{"partition": 0, "in_sync": [1, 2]}],
        "settings": {},
        "id": None,
    }
    assert yaml([topic]) == (
        "- name: orders\n"
        "  partitions:\n"
        "    - partition: 0\n"
        "      in_sync:\n"
        "        - 1\n"
        "        - 2\n"
        "  settings: {}\n"
        "  id: null\n"
    )


@pytest.mark.parametrize("character", ["\x7f", "\x85", "\u2028", "\ufeff", "\ud800"])
def test_what_yaml_forbids_is_escaped(character: str) -> None:
    assert yaml(character) == f'"\\u{ord(character):04x}"\n'
