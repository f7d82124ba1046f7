"""Our tables against Apache Kafka's: every name, type, default, importance and rule of its clients."""

from pathlib import Path

import pytest

from ottla.client.settings.admin import ADMIN
from ottla.client.settings.consumer import CONSUMER
from ottla.client.settings.honoured import HONOURED
from ottla.client.settings.producer import PRODUCER
from ottla.client.settings.resolve import OWN, SHORT_NAMES, TABLES
from ottla.metadata.settings.definition import Setting, Update
from tests.unit.metadata.settings.tables import rows, shown_default

FACTS = Path(__file__).parent / "facts"
KINDS = {"producer": PRODUCER, "consumer": CONSUMER, "admin": ADMIN}
CASES = [(row, table) for kind, table in KINDS.items() for row in rows(FACTS / f"{kind}.tsv")]
# Classes in Java, names or objects here.
OURS = {
    "key.serializer": "null",
    "value.serializer": "null",
    "key.deserializer": "null",
    "value.deserializer": "null",
    "partition.assignment.strategy": "[range, cooperative-sticky]",
}


@pytest.mark.parametrize(("row", "table"), CASES, ids=lambda each: each.get("name", ""))
def test_setting_is_as_in_kafka(row: dict[str, str], table: dict[str, Setting]) -> None:
    setting = table[row["name"]]
    assert setting.type.name == row["type"]
    assert setting.importance.value == row["importance"]
    assert str(setting.valid) == row["valid"]
    assert shown_default(setting) == OURS.get(setting.name, row["default"].removeprefix("class "))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_added(kind: str) -> None:
    assert sorted(KINDS[kind]) == sorted(row["name"] for row in rows(FACTS / f"{kind}.tsv"))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_sound(kind: str) -> None:
    for setting in KINDS[kind].values():
        assert setting.doc[0].isupper() and setting.doc.endswith("."), setting.name
        assert setting.update is Update.READ_ONLY, setting.name
        text = None if setting.required else setting.text(setting.default_value)
        assert text is None or setting.parse(text) == setting.default_value, setting.name


def test_names_of_our_own_are_nobody_elses() -> None:
    for kind, table in TABLES.items():
        assert not OWN.get(kind, frozenset()) & table.keys()
        assert HONOURED[kind] - OWN.get(kind, frozenset()) <= table.keys()
    assert all(name in PRODUCER for name in SHORT_NAMES.values())
