"""Subscriptions by regular expression."""

from ottla.groups.consumer.groups import ConsumerGroups
from ottla.wire.errors import ErrorCode
from tests.unit.groups.consumer_stage import Stage, durable, settle


def regexes(stage):
    return [record for record in stage.records if record.key.api_key == 16]


def test_an_expression_is_resolved_apart_from_the_heartbeat():
    stage = Stage(foo1=1, foo2=2, bar=4)
    member = stage.consumer("a", subscribed_topic_regex="foo.*")
    member.step()
    assert (member.epoch, member.owned) == (1, set())
    stage.pass_time(0)
    (record,) = regexes(stage)
    assert record.key.regular_expression == "foo.*"
    assert (record.value.topics, record.value.version) == (["foo1", "foo2"], stage.topics.version)
    assert record.value.timestamp == stage.now
    member.step()
    assert (member.epoch, len(member.owned)) == (2, 3)
    assert stage.group.subscribes_to("foo1") and not stage.group.subscribes_to("bar")
    assert durable(stage.fresh()) == durable(stage.machine)


def test_an_expression_must_match_the_whole_name():
    stage = Stage(foo=1, foobar=1)
    member = stage.consumer("a", subscribed_topic_regex="foo")
    member.step()
    stage.pass_time(0)
    member.step()
    assert member.owned == {(stage.topics.find("foo").id, 0)}


def test_topics_that_come_later_are_found_after_ten_seconds():
    stage = Stage(foo1=1)
    member = stage.consumer("a", subscribed_topic_regex="foo.*")
    member.step()
    stage.pass_time(0)
    member.step()
    stage.topics.put("foo2", 1)
    stage.pass_time(10_000)
    member.step()
    stage.pass_time(0)
    assert len(regexes(stage)) == 1, "not yet"
    stage.pass_time(1)
    member.step()
    stage.pass_time(0)
    member.step()
    assert len(member.owned) == 2


def test_changes_that_bring_no_topic_do_not_ask_for_it_again():
    stage = Stage(foo1=1)
    member = stage.consumer("a", subscribed_topic_regex="foo.*")
    member.step()
    stage.pass_time(0)
    member.step()
    stage.topics.put("foo1", 2)
    for _ in range(3):
        stage.pass_time(11_000)
        member.step()
    assert len(regexes(stage)) == 1
    assert len(member.owned) == 2


def test_expressions_are_refreshed_now_and_then():
    stage = Stage(foo1=1)
    member = stage.consumer("a", subscribed_topic_regex="foo.*")
    member.step()
    stage.pass_time(0)
    epoch = stage.group.epoch
    for _ in range(61):
        stage.pass_time(10_000)
        member.step()
    stage.pass_time(0)
    assert len(regexes(stage)) == 2
    assert stage.group.epoch == epoch


def test_a_resolved_expression_is_shared():
    stage = Stage(foo=4)
    a = stage.consumer("a", subscribed_topic_regex="f.*")
    a.step()
    stage.pass_time(0)
    a.step()
    b = stage.consumer("b", subscribed_topic_regex="f.*")
    settle([b, a])
    assert len(a.owned) == len(b.owned) == 2
    assert len(regexes(stage)) == 1


def test_an_expression_goes_with_its_last_member():
    stage = Stage(foo=4)
    members = [stage.consumer(each, subscribed_topic_regex="f.*") for each in "ab"]
    settle(members, 1)
    stage.pass_time(0)
    settle(members)
    stage.beat(member_id="a", member_epoch=-1)
    assert stage.group.resolved
    members[1].beat(subscribed_topic_names=["foo"], subscribed_topic_regex="")
    assert not stage.group.resolved and not stage.group.regexes
    assert regexes(stage)[-1].value is None
    settle(members[1:])
    assert len(members[1].owned) == 4
    assert durable(stage.fresh()) == durable(stage.machine)


def test_the_last_of_an_expression_may_leave():
    stage = Stage(foo=4)
    member = stage.consumer("a", subscribed_topic_regex="f.*")
    member.step()
    stage.pass_time(0)
    stage.beat(member_id="a", member_epoch=-1)
    assert not stage.group.resolved and not stage.group.counts


def test_without_an_engine_every_expression_is_refused():
    stage = Stage()
    stage.machine.consumer = ConsumerGroups(stage.machine.shelf)
    response = stage.refused(
        ErrorCode.INVALID_REGULAR_EXPRESSION, member_id="a", subscribed_topic_regex="foo"
    )
    assert "foo" in response.error_message


def told(stage):
    return sum(record.value is not None for record in regexes(stage))


def test_many_names_are_held_against_many_expressions_in_steps(monkeypatch):
    """A thousand expressions were compiled, and held against all topics, in one turn of the loop."""
    stage = Stage(**{f"foo{number}": 1 for number in range(50)})
    monkeypatch.setattr("ottla.groups.consumer.regex._STEP_COST", 20_000)
    patterns = [f"foo{number}.*" for number in range(5)]
    members = [stage.consumer(pattern, subscribed_topic_regex=pattern) for pattern in patterns]
    for member in members:
        member.step()
    stage.pass_time(100)
    stage.pass_time(10_000)
    for member in members:
        member.step()
    resolved, steps = told(stage), 0
    while told(stage) == resolved:
        stage.pass_time(1)
        steps += 1
        if steps == 5:
            members.pop().beat(subscribed_topic_names=["foo7"], subscribed_topic_regex="")
    assert steps > 10
    found = {record.key.regular_expression: record.value.topics for record in regexes(stage)[6:]}
    assert sorted(found) == patterns[:4]
    assert sorted(found["foo1.*"]) == ["foo1", *(f"foo1{digit}" for digit in range(10))]
    assert not stage.machine.consumer._desk.matching
    assert durable(stage.fresh()) == durable(stage.machine)
