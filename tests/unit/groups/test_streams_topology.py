"""A topology against the topics there are: what is missing, what is created, what does not fit."""

import pytest

from ottla.groups.streams.statuses import StatusCode
from ottla.wire.errors import ErrorCode
from tests.unit.groups.test_streams_stage import Stage, info, settle, subtopology, topology


def join(stage, *subtopologies):
    thread = stage.thread("a", topology=topology(*subtopologies))
    thread.step()
    return thread


def missing(stage):
    """Return the topics that the last answer names as missing."""
    return {topic.name: topic.num_partitions for topic in stage.missing}


def test_source_topics_must_be_there():
    stage = Stage(other=1)
    a = join(stage, subtopology("0", ["e", "d", "c", "b", "other"]))
    assert a.statuses == [StatusCode.MISSING_SOURCE_TOPICS]
    assert a.response.status[0].status_detail == "Source topics b, c, d and 1 additional topics are missing."
    assert (stage.group.state, a.active, stage.missing) == ("NotReady", set(), ())
    assert stage.group.validated_epoch == -1
    for name in "bcde":
        stage.topics.put(name, 2)
    settle([a])
    assert a.statuses == []
    assert a.active == {("0", 0), ("0", 1)}
    assert stage.group.state == "Stable"


def test_internal_topics_are_asked_for_until_they_are_there():
    stage = Stage(foo=3)
    parts = [
        subtopology("0", ["foo"], sinks=["between"]),
        subtopology("1", changelogs=["store"], repartitions=[info("between", replication=2, retention="1")]),
    ]
    a = join(stage, *parts)
    assert a.statuses == [StatusCode.MISSING_INTERNAL_TOPICS]
    assert a.response.status[0].status_detail == "Internal topics are missing: between, store"
    assert missing(stage) == {"between": 3, "store": 3}
    between, store = stage.missing
    assert (between.replication_factor, store.replication_factor) == (2, -1)
    assert [(each.name, each.value) for each in between.configs] == [("retention", "1")]
    a.step()
    assert len(stage.missing) == 2
    stage.topics.put("between", 3)
    a.step()
    assert missing(stage) == {"store": 3}
    stage.topics.put("store", 3)
    settle([a])
    assert (a.statuses, stage.missing) == ([], ())
    assert len(a.active) == 6
    [found] = stage.describe()
    [topic] = found.topology.subtopologies[1].repartition_source_topics
    assert (topic.name, topic.partitions) == ("between", 3)


def test_an_internal_topic_of_another_width_does_not_fit():
    stage = Stage(foo=3, store=2)
    a = join(stage, subtopology("0", ["foo"], changelogs=["store"]))
    assert a.statuses == [StatusCode.INCORRECTLY_PARTITIONED_TOPICS]
    detail = "Existing topic store has different number of partitions: expected 3, found 2"
    assert a.response.status[0].status_detail == detail


def test_topics_that_are_joined_have_equally_many_partitions():
    stage = Stage(foo=3, bar=2)
    a = join(stage, subtopology("0", ["foo", "bar"], together=[([0, 1], [])]))
    assert a.statuses == [StatusCode.INCORRECTLY_PARTITIONED_TOPICS]
    detail = "Following topics do not have the same number of partitions: [{bar=2, foo=3}]"
    assert a.response.status[0].status_detail == detail
    stage.topics.put("bar", 3)
    settle([a])
    assert a.statuses == []


def test_a_repartition_topic_follows_what_it_is_joined_with():
    stage = Stage(foo=3, bar=5)
    join(
        stage,
        subtopology("0", ["foo"], sinks=["between"]),
        subtopology("1", ["bar"], repartitions=[info("between")], together=[([0], [0])]),
    )
    assert missing(stage) == {"between": 5}


def test_repartition_topics_among_themselves_follow_the_widest_or_the_fixed():
    parts = [
        subtopology("0", ["foo"], sinks=["x"]),
        subtopology("1", ["bar"], sinks=["y"]),
    ]
    stage = Stage(foo=3, bar=5)
    join(stage, *parts, subtopology("2", repartitions=[info("x"), info("y")], together=[([], [0, 1])]))
    assert missing(stage) == {"x": 5, "y": 5}
    stage = Stage(foo=3, bar=5)
    join(stage, *parts, subtopology("2", repartitions=[info("x", 7), info("y")], together=[([], [0, 1])]))
    assert missing(stage) == {"x": 7, "y": 7}


def test_a_fixed_width_must_fit_what_it_is_joined_with():
    stage = Stage(foo=3)
    a = join(
        stage,
        subtopology("0", ["foo"], sinks=["x"], repartitions=[info("x", 4)], together=[([0], [0])]),
    )
    assert a.statuses == [StatusCode.INCORRECTLY_PARTITIONED_TOPICS]
    assert "Number of partitions [4] of repartition topic [x]" in a.response.status[0].status_detail


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ([subtopology("0")], ErrorCode.STREAMS_INVALID_TOPOLOGY),
        ([subtopology("0", ["foo"], repartitions=[info("x")])], ErrorCode.STREAMS_INVALID_TOPOLOGY),
        (
            [subtopology("0", repartitions=[info("x")], sinks=["x"])],
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
        ),
        ([subtopology("0", ["foo"], together=[([1], [])])], ErrorCode.UNKNOWN_SERVER_ERROR),
        ([subtopology("0", ["foo"]), subtopology("0", ["foo"])], ErrorCode.UNKNOWN_SERVER_ERROR),
        ([subtopology("0", ["foo"], repartitions=[info("x", -1)])], ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_topology_that_makes_no_sense_is_refused(parts, code):
    stage = Stage(foo=3)
    stage.refused(code, topology=topology(*parts))
    assert stage.records == []


def test_a_changelog_says_no_width():
    part = subtopology("0", ["foo"])
    part.state_changelog_topics = [info("store", 3)]
    Stage(foo=3).refused(ErrorCode.STREAMS_INVALID_TOPOLOGY, topology=topology(part))


def test_a_topic_that_grows_makes_more_tasks():
    stage = Stage(foo=2)
    a = join(stage, subtopology("0", ["foo"]))
    epoch = stage.group.epoch
    stage.topics.put("foo", 4)
    settle([a], rounds=2)
    assert len(a.active) == 4
    assert stage.group.epoch == epoch + 1
    stage.topics.put("unrelated", 1)
    a.step()
    assert stage.group.epoch == epoch + 1
