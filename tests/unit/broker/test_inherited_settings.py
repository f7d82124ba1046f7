"""Settings that topics inherit: all follow, in steps, and only when one of these has changed."""

from ottla.metadata.config import ConfigType
from ottla.partition import inherited_settings
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.unit.broker.conftest import NODE_ID

Resource = IncrementalAlterConfigsRequest.AlterConfigsResource


def change(station, name, value, broker=NODE_ID):
    """Change a setting of a broker."""
    config = Resource.AlterableConfig(name=name, config_operation=0, value=value)
    resource = Resource(resource_type=ConfigType.BROKER, resource_name=str(broker), configs=[config])
    answers = []
    station.quorum.submit(
        lambda controller, now: controller.incremental_alter_configs(
            IncrementalAlterConfigsRequest(resources=[resource]), now
        ),
        answers.append,
    )
    station.settle()
    assert isinstance(answers[0], IncrementalAlterConfigsResponse)
    assert [each.error_code for each in answers[0].responses] == [0]


def watch(station):
    """Note whose settings are worked out; the first of each change are those of a topic that sets nothing."""
    asked, table = [], station.table
    effective, inherited = table._effective, table.inherited._effective
    table._effective = lambda overrides: asked.append(dict(overrides)) or effective(overrides)
    table.inherited._effective = lambda: asked.append({}) or inherited()
    return asked


def retentions(station, count):
    return [station.table.by_name(f"t{n}", 0).log.config.retention_ms for n in range(count)]


def test_a_setting_that_no_topic_inherits_costs_one_look(station):
    for number in range(50):
        station.create(f"t{number}")
    asked = watch(station)
    change(station, "log.cleaner.threads", "2")
    station.settle()
    assert asked == [{}]


def test_topics_follow_a_setting_that_they_inherit_some_a_turn(station, monkeypatch):
    monkeypatch.setattr(inherited_settings, "_TOPICS_A_TURN", 7)
    turns = []
    station.table.inherited.call_soon = turns.append
    for number in range(20):
        station.create(f"t{number}")
    station.create("own", retention_ms="5")
    change(station, "log.retention.ms", "1000")
    station.settle()
    assert sum(each == 1000 for each in retentions(station, 20)) == 7 and len(turns) == 1
    asked = watch(station)
    for value in range(2000, 2010):
        change(station, "log.retention.ms", str(value))
    station.settle()
    assert asked == [{}] * 10 and len(turns) == 1, "what is under way begins again, and once"
    while turns:
        turns.pop()()
    assert retentions(station, 20) == [2009] * 20
    assert station.table.by_name("own", 0).log.config.retention_ms == 5
    assert len(asked) == 10 + 21


def test_a_topic_that_goes_meanwhile_is_passed_over(station, monkeypatch):
    monkeypatch.setattr(inherited_settings, "_TOPICS_A_TURN", 1)
    turns = []
    station.table.inherited.call_soon = turns.append
    for number in range(3):
        station.create(f"t{number}")
    change(station, "log.retention.ms", "1000")
    station.settle()
    request = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="t2")])
    station.quorum.submit(lambda controller, now: controller.delete_topics(request, 6, now), lambda _: None)
    station.settle()
    assert len(station.broker.image.topics.by_name) == 2
    while turns:
        turns.pop()()
    assert retentions(station, 2) == [1000] * 2
