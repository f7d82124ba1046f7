"""The keys of a call: what stays open, what ends, and what is raised."""

import pytest

from ottla.client.admin.keyed_outcomes import (
    ALWAYS_RETRIABLE,
    LEADER_MOVED,
    UNKNOWN_SECONDS_MAX,
    KeyedOutcomes,
    results_or_raise,
)
from ottla.client.errors import Closed, Disconnected, Refused, SomeFailed, TimedOut, Unsupported
from ottla.wire.errors import ErrorCode

LOADING = Refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
MOVED = Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)
UNKNOWN = Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
DENIED = Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def test_every_key_ends():
    outcomes = KeyedOutcomes(["a", "b", "c"], ALWAYS_RETRIABLE, 0.0)
    outcomes.record({"a": 1, "b": LOADING, "c": DENIED}, 0.0)
    assert list(outcomes.open) == ["b"]
    outcomes.record({"b": None}, 1.0)
    assert not outcomes.open
    with pytest.raises(SomeFailed) as caught:
        outcomes.outcome()
    assert caught.value.errors == {"c": DENIED}
    assert caught.value.results == {"a": 1, "b": None}


@pytest.mark.parametrize(
    ("error", "again", "open"),
    [
        (LOADING, ALWAYS_RETRIABLE, True),
        (MOVED, ALWAYS_RETRIABLE, False),
        (MOVED, ALWAYS_RETRIABLE | LEADER_MOVED, True),
        (UNKNOWN, ALWAYS_RETRIABLE, False),
        (UNKNOWN, ALWAYS_RETRIABLE | LEADER_MOVED, True),
        (DENIED, ALWAYS_RETRIABLE | LEADER_MOVED, False),
        (Disconnected("x"), ALWAYS_RETRIABLE, True),
        (TimedOut("x"), ALWAYS_RETRIABLE, True),
        (Unsupported("x"), ALWAYS_RETRIABLE, False),
        (Closed("x"), ALWAYS_RETRIABLE, False),
    ],
)
def test_what_is_worth_another_try(error, again, open):
    outcomes = KeyedOutcomes(["a"], again, 0.0)
    outcomes.record({"a": error}, 0.0)
    assert bool(outcomes.open) is open


def test_patience_with_a_topic_that_nobody_knows_ends_early():
    outcomes = KeyedOutcomes(["a"], LEADER_MOVED, 10.0)
    outcomes.record({"a": UNKNOWN}, 10.0 + UNKNOWN_SECONDS_MAX)
    assert outcomes.open
    outcomes.record({"a": UNKNOWN}, 10.1 + UNKNOWN_SECONDS_MAX)
    assert not outcomes.open


def test_one_key_raises_its_own_error():
    with pytest.raises(Refused) as caught:
        results_or_raise({"a": DENIED})
    assert caught.value is DENIED
    assert results_or_raise({"a": 1}) == {"a": 1}
    assert results_or_raise({}) == {}


def test_the_last_refusal_is_the_answer_when_time_is_up():
    outcomes = KeyedOutcomes(["a", "b", "c"], ALWAYS_RETRIABLE, 0.0)
    outcomes.record({"a": LOADING, "b": Disconnected("gone")}, 0.0)
    outcomes.fail_open("within 5 s")
    assert outcomes.errors["a"] is LOADING
    for key, said in {
        "b": "there was no answer about b within 5 s: gone",
        "c": "there was no answer about c within 5 s",
    }.items():
        assert isinstance(outcomes.errors[key], TimedOut)
        assert str(outcomes.errors[key]) == said


def test_several_errors_in_one_line():
    several = SomeFailed({number: Disconnected(f"e{number}") for number in range(5)}, {9: None})
    assert str(several) == "5 of 6 failed: e0; e1; e2; and 2 more"
    assert several.retriable
    assert not SomeFailed({1: Disconnected("x"), 2: DENIED}, {}).retriable
