"""Our tables against Apache Kafka's: every name, type, default, importance and rule."""

from pathlib import Path

import pytest

from ottla.metadata.settings.broker import BROKER
from ottla.metadata.settings.broker.own import OWN_SETTINGS
from ottla.metadata.settings.definition import Setting, Update
from ottla.metadata.settings.describe import describe_broker, describe_group, describe_topic
from ottla.metadata.settings.group import GROUP
from ottla.metadata.settings.layers import BrokerValues
from ottla.metadata.settings.topic import SYNONYMS, TOPIC
from tests.unit.metadata.settings import tables
from tests.unit.metadata.settings.tables import shown_default

FACTS = Path(__file__).parent / "facts"


def rows(name: str) -> list[dict[str, str]]:
    return tables.rows(FACTS / f"{name}.tsv")


TABLES = [(row, TOPIC) for row in rows("topic")] + [(row, BROKER) for row in rows("broker")]


@pytest.mark.parametrize(("row", "table"), TABLES, ids=lambda each: each.get("name", ""))
def test_setting_is_as_in_kafka(row: dict[str, str], table: dict[str, Setting]) -> None:
    setting = table[row["name"]]
    assert setting.type.name == row["type"]
    assert setting.importance.value == row["importance"]
    assert str(setting.valid) == row["valid"]
    assert shown_default(setting) == row["default"].removeprefix("class ")


def test_nothing_is_added_but_our_own_and_the_internal() -> None:
    known = {row["name"] for row in rows("broker")}
    extra = {name for name, setting in BROKER.items() if not setting.hidden} - known
    assert extra == {setting.name for setting in OWN_SETTINGS}
    assert {name for name, each in TOPIC.items() if not each.hidden} == {row["name"] for row in rows("topic")}


def test_what_came_later_is_of_dead_letters() -> None:
    later = {
        name: setting.text(setting.default_value)
        for table in (TOPIC, BROKER, GROUP)
        for name, setting in table.items()
        if setting.later
    }
    assert later == {
        "errors.deadletterqueue.auto.create.topics.enable": "false",
        "errors.deadletterqueue.copy.record.enable": "false",
        "errors.deadletterqueue.group.enable": "false",
        "errors.deadletterqueue.topic.name": "",
        "errors.deadletterqueue.topic.name.prefix": "dlq.",
    }
    assert BROKER["errors.deadletterqueue.topic.name.prefix"].update is Update.CLUSTER_WIDE
    values = BrokerValues({})
    for described in (describe_topic(values, {}), describe_group(values, {}), describe_broker(values)):
        assert not {each.name for each in described} & later.keys(), "Kafka 4.3 does not know it"
    name = "errors.deadletterqueue.topic.name"
    assert (name, "dlq.x") in {(each.name, each.value) for each in describe_group(values, {name: "dlq.x"})}


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
