"""A batch: both ends are settled, and what is not there is said."""

import pytest

from ottla.client.record import TopicPartition
from ottla.spark.source.planning import plan_batch
from ottla.spark.source.refusal import DataLost, NothingThere, OptionError
from ottla.wire.uuid import uuid_text
from tests.unit.spark.source.world import options, play

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def plan(expected, start=(0, 0), **given):
    async def test(mini, connection, chosen):
        for number, count in ((0, 10), (1, 4)):
            for n in range(count):
                mini.append("t", number, b"%d" % n)
        mini.logs[T0].start, mini.logs[T1].start = start
        mini.committed[T1] = 3
        tasks = await plan_batch(chosen, connection)
        assert [(task.partition, task.start, task.end) for task in tasks] == expected
        assert {task.topic_id for task in tasks} <= {uuid_text(mini.ids["t"])}

    play(test, options(**given), t=2)


def test_from_the_beginning_to_the_end():
    plan([(0, 2, 10), (1, 0, 4)], (2, 0))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"startingOffsets": '{"t": {"0": 3, "1": -2}}'}, [(0, 3, 10), (1, 0, 4)]),
        ({"endingOffsets": '{"t": {"0": 3, "1": -1}}'}, [(0, 0, 3), (1, 0, 4)]),
        ({"startingOffsets": "group", "groupId": "g"}, [(0, 0, 10), (1, 3, 4)]),
        ({"endingOffsets": "group", "groupId": "g"}, [(1, 0, 3)]),
        ({"startingTimestamp": "1002", "endingTimestamp": "1003"}, [(0, 2, 3), (1, 2, 3)]),
        ({"endingTimestamp": "1006"}, [(0, 0, 6), (1, 0, 4)]),
        ({"minPartitions": "4"}, [(0, 0, 3), (0, 3, 6), (0, 6, 10), (1, 0, 4)]),
        ({"maxRecordsPerPartition": "5"}, [(0, 0, 5), (0, 5, 10), (1, 0, 4)]),
    ],
)
def test_from_where_to_where(given, expected):
    plan(expected, **given)


@pytest.mark.parametrize(
    ("given", "start", "error", "words"),
    [
        ({"startingOffsets": '{"t": {"0": 3, "1": 1}}'}, (5, 0), DataLost, "t-0 is to be read from offset 3"),
        ({"endingOffsets": '{"t": {"0": 30, "1": 1}}'}, (0, 0), DataLost, "up to offset 30, and ends at 10"),
        ({"startingOffsets": '{"t": {"0": 11, "1": 1}}'}, (0, 0), OptionError, "which lies behind 10"),
        ({"startingOffsets": '{"t": {"0": 1}}'}, (0, 0), OptionError, "lacks t-1"),
        (
            {"startingOffsets": '{"t": {"0": 5, "1": 0}}', "endingOffsets": '{"t": {"0": 4, "1": 1}}'},
            (0, 0),
            OptionError,
            "lies behind its ending offset",
        ),
        (
            {"startingOffsets": '{"t": {"0": 5}}', "endingOffsets": '{"t": {"0": 9, "1": 1}}'},
            (0, 0),
            OptionError,
            "different partitions: t-1",
        ),
        ({"subscribe": "t,u"}, (0, 0), NothingThere, "topic u does not exist"),
    ],
)
def test_what_cannot_be_read(given, start, error, words):
    with pytest.raises(error, match=words):
        plan([], start, **given)


def test_a_loss_may_be_borne():
    given = {"startingOffsets": '{"t": {"0": 3, "1": 1}}', "endingOffsets": '{"t": {"0": 30, "1": 1}}'}
    plan([(0, 5, 10)], (5, 0), failOnDataLoss="false", **given)
