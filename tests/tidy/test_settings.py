"""A setting counts as honoured exactly when code reads it: the server's here, the client's in its own test."""

import ast

from ottla.metadata.settings.broker import BROKER, broker_setting
from ottla.metadata.settings.group import GROUP
from ottla.metadata.settings.honoured import HONOURED_DIRECTLY, HONOURED_GROUP, HONOURED_TOPIC
from ottla.metadata.settings.topic import SYNONYMS, TOPIC
from tests.tidy.tree import SOURCE, modules, package_of, syntax

# Modules that name settings without acting on them.
TABLES = SOURCE / "metadata" / "settings"
# Read so that a contradiction is refused; what they do is decided in the tables, if they do anything.
CHECKED_ONLY = {synonym.name for synonyms in SYNONYMS.values() for synonym in synonyms} | {
    "queued.max.request.bytes"
}


# Rooms that know the settings of clients and services, some of which are named as a broker's; and one that sets what
# others read.
OF_CLIENTS = {"client", "cli", "sim", "http", "services"}


def names_read(without: set[str] | None = None) -> tuple[set[str], set[str]]:
    """Every text in the code, and every attribute as if it were a setting."""
    texts: set[str] = set()
    attributes: set[str] = set()
    for path in modules():
        if TABLES not in path.parents and package_of(path) not in (without or {"client", "sim", "http", "services"}):
            for node in ast.walk(syntax(path)):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    texts.add(node.value)
                elif isinstance(node, ast.Attribute):
                    attributes.add(node.attr.replace("_", "."))
    return texts, attributes


def test_what_is_honoured_is_read() -> None:
    texts, attributes = names_read()
    assert sorted(HONOURED_DIRECTLY - texts) == [], "honoured.py says more than is true"
    assert sorted(HONOURED_GROUP - texts) == [], "honoured.py says more than is true"
    # A log's configuration has the topic's settings as attributes, without our prefix.
    of_topics = {name.removeprefix("ottla.") for name in HONOURED_TOPIC - texts}
    assert sorted(of_topics - attributes) == [], "honoured.py says more than is true"


def test_what_is_read_is_honoured() -> None:
    # A name without a dot is an ordinary word.
    texts = {text for text in names_read(without=OF_CLIENTS)[0] if "." in text}
    assert sorted((texts & BROKER.keys()) - HONOURED_DIRECTLY - CHECKED_ONLY) == [], "honoured.py lacks it"
    assert sorted((texts & GROUP.keys()) - HONOURED_GROUP) == [], "honoured.py lacks it"
    assert sorted((texts & TOPIC.keys()) - HONOURED_TOPIC - BROKER.keys()) == [], "honoured.py lacks it"


def test_honoured_settings_exist() -> None:
    assert {name for name in HONOURED_DIRECTLY if broker_setting(name) is None} == set()
    assert HONOURED_TOPIC <= TOPIC.keys()
