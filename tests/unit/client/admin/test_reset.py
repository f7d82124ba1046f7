"""Where offsets go when a group is reset."""

import datetime

import pytest

from ottla.client.admin.reset import (
    Ends,
    Move,
    ShiftBy,
    ToCurrent,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToTime,
    plan,
)
from ottla.client.duration import time_ms
from ottla.client.errors import NoOffset
from ottla.client.record import TopicPartition

KEY = TopicPartition("t", 0)
ENDS = Ends(10, 20)


@pytest.mark.parametrize(
    ("to", "current", "found", "target"),
    [
        (ToEarliest(), 15, None, 10),
        (ToLatest(), 15, None, 20),
        (ToCurrent(), 15, None, 15),
        (ToCurrent(), None, None, 20),
        (ToCurrent(), 5, None, 10),
        (ToOffset(12), None, None, 12),
        (ToOffset(9), None, None, 10),
        (ToOffset(21), None, None, 20),
        (ToOffset({KEY: 13}), 15, None, 13),
        (ShiftBy(2), 15, None, 17),
        (ShiftBy(-2), 15, None, 13),
        (ShiftBy(-20), 15, None, 10),
        (ShiftBy(20), 15, None, 20),
        (ToTime(5), 15, 16, 16),
        (ToTime(5), 15, -1, 20),
    ],
)
def test_target(to, current, found, target):
    assert plan(to, KEY, ENDS, current, found) == Move(current, target)


@pytest.mark.parametrize("to", [ShiftBy(1), ToOffset({TopicPartition("t", 1): 3})])
def test_there_must_be_something_to_go_by(to):
    with pytest.raises(NoOffset):
        plan(to, KEY, ENDS, None)


def test_only_a_time_is_looked_up():
    assert ToTime(5).time() == 5
    assert all(to.time() is None for to in (ToEarliest(), ToLatest(), ToCurrent(), ToOffset(1), ShiftBy(1)))
    moment = datetime.datetime(2024, 1, 1, 0, 0, 0, 5000, tzinfo=datetime.UTC)
    assert time_ms(moment) == 1_704_067_200_005
