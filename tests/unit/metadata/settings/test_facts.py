"""Our tables against Apache Kafka's: every name, type, default, importance and rule."""

import csv
from pathlib import Path

import pytest

from ottla.metadata.settings.broker import BROKER
from ottla.metadata.settings.broker.own import OWN_SETTINGS
from ottla.metadata.settings.definition import Setting, Type
from ottla.metadata.settings.topic import SYNONYMS, TOPIC

FACTS = Path(__file__).parent / "facts"


def rows(name: str) -> list[dict[str, str]]:
    with (FACTS / f"{name}.tsv").open() as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


TABLES = [(row, TOPIC) for row in rows("topic")] + [(row, BROKER) for row in rows("broker")]


@pytest.mark.parametrize(("row", "table"), TABLES, ids=lambda each: each.get("name", ""))
def test_setting_is_as_in_kafka(row: dict[str, str], table: dict[str, Setting]) -> None:
    setting = table[row["name"]]
    assert setting.type.name == row["type"]
    assert setting.importance.value == row["importance"]
    assert str(setting.valid) == row["valid"]
    assert shown_default(setting) == row["default"].removeprefix("class ")


def shown_default(setting: Setting) -> str:
    if setting.required:
        return "(required)"
    text = setting.text(setting.default_value)
    if text is None:
        return "null"
    return f"[{', '.join(text.split(','))}]" if setting.type is Type.LIST else text


def test_nothing_is_added_but_our_own_and_the_internal() -> None:
    known = {row["name"] for row in rows("broker")}
    extra = {name for name, setting in BROKER.items() if not setting.internal} - known
    assert extra == {setting.name for setting in OWN_SETTINGS}
    assert {name for name, each in TOPIC.items() if not each.internal} == {
        row["name"] for row in rows("topic")
    }


def test_defaults_keep_their_own_rules() -> None:
    for setting in (*TOPIC.values(), *BROKER.values()):
        if not setting.required and setting.default_value is not None:
            text = setting.text(setting.default_value)
            assert text is not None
            assert setting.parse(text) == setting.default_value


def test_synonyms_exist_and_agree_on_the_default() -> None:
    for name, synonyms in SYNONYMS.items():
        last = BROKER[synonyms[-1].name].default_value
        if synonyms[-1].factor != 1:
            assert isinstance(last, int)
            last *= synonyms[-1].factor
        assert last == TOPIC[name].default_value, name
        assert all(synonym.name in BROKER for synonym in synonyms)


def test_every_setting_is_explained_in_a_sentence() -> None:
    for setting in (*TOPIC.values(), *BROKER.values()):
        assert setting.doc[0].isupper() or setting.doc.startswith(("host", "*")), setting.name
        assert setting.doc.endswith("."), setting.name
