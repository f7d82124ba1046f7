"""C and Python are compared under every setting of a topic that an append or a fetch looks at."""

from dataclasses import fields
from pathlib import Path

import pytest

from ottla.log.config import LogConfig
from ottla.metadata.settings.topic import TOPIC
from tests.unit.log.topic_settings import CASES, NOT_LOOKED_AT

TESTS = Path(__file__).parents[1]
COMPARISONS = (
    "property/test_log_plain.py",
    "property/test_log_power_loss.py",
    "sim/test_compiled.py",
    "unit/broker/test_express.py",
    "unit/broker/test_lane.py",
)
COMPARED = {field for case in CASES.values() for field in case.log}


def test_every_setting_of_a_log_is_compared_or_has_a_reason() -> None:
    assert COMPARED | NOT_LOOKED_AT.keys() == {field.name for field in fields(LogConfig)}
    assert not COMPARED & NOT_LOOKED_AT.keys()


@pytest.mark.parametrize("name", CASES)
def test_what_a_request_asks_for_are_the_same_settings(name: str) -> None:
    case = CASES[name]
    if case.topic is None:
        assert not any(field.replace("_", ".") in TOPIC for field in case.log)
        return
    asked = {each.removeprefix("ottla.").replace(".", "_") for each in case.topic}
    # Kafka's least segment is larger than a test of one log needs, so it may be left out.
    assert asked <= case.log.keys() and case.log.keys() - asked <= {"segment_bytes", "index_interval_bytes"}
    for each, text in case.topic.items():
        TOPIC[each].parse(text)


@pytest.mark.parametrize("path", COMPARISONS)
def test_every_comparison_takes_its_settings_from_the_table(path: str) -> None:
    text = (TESTS / path).read_text()
    assert "from tests.unit.log.topic_settings import" in text
    assert "parametrize" in text or "sampled_from" in text
