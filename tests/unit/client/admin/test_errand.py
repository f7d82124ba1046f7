"""The keys of a call: what stays open, what ends, and what is raised."""

import pytest

from ottla.client.admin.errand import AGAIN, LEADER_MOVED, UNKNOWN_SECONDS_MAX, Errand, settled
from ottla.client.errors import Closed, Disconnected, Refused, SomeFailed, TimedOut, Unsupported
from ottla.wire.errors import ErrorCode

LOADING = Refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
MOVED = Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)
UNKNOWN = Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
DENIED = Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def test_every_key_ends():
    errand = Errand(["a", "b", "c"], AGAIN, 0.0)
    errand.take({"a": 1, "b": LOADING, "c": DENIED}, 0.0)
    assert list(errand.open) == ["b"]
    errand.take({"b": None}, 1.0)
    assert not errand.open
    with pytest.raises(SomeFailed) as caught:
        errand.outcome()
    assert caught.value.errors == {"c": DENIED}
    assert caught.value.results == {"a": 1, "b": None}


@pytest.mark.parametrize(
    ("error", "again", "open"),
    [
        (LOADING, AGAIN, True),
        (MOVED, AGAIN, False),
        (MOVED, AGAIN | LEADER_MOVED, True),
        (UNKNOWN, AGAIN, False),
        (UNKNOWN, AGAIN | LEADER_MOVED, True),
        (DENIED, AGAIN | LEADER_MOVED, False),
        (Disconnected("x"), AGAIN, True),
        (TimedOut("x"), AGAIN, True),
        (Unsupported("x"), AGAIN, False),
        (Closed("x"), AGAIN, False),
    ],
)
def test_what_is_worth_another_try(error, again, open):
    errand = Errand(["a"], again, 0.0)
    errand.take({"a": error}, 0.0)
    assert bool(errand.open) is open


def test_patience_with_a_topic_that_nobody_knows_ends_early():
    errand = Errand(["a"], LEADER_MOVED, 10.0)
    errand.take({"a": UNKNOWN}, 10.0 + UNKNOWN_SECONDS_MAX)
    assert errand.open
    errand.take({"a": UNKNOWN}, 10.1 + UNKNOWN_SECONDS_MAX)
    assert not errand.open


def test_one_key_raises_its_own_error():
    with pytest.raises(Refused) as caught:
        settled({"a": DENIED})
    assert caught.value is DENIED
    assert settled({"a": 1}) == {"a": 1}
    assert settled({}) == {}


def test_the_last_refusal_is_the_answer_when_time_is_up():
    errand = Errand(["a", "b", "c"], AGAIN, 0.0)
    errand.take({"a": LOADING, "b": Disconnected("gone")}, 0.0)
    errand.give_up("within 5 s")
    assert errand.errors["a"] is LOADING
    for key, said in {
        "b": "there was no answer about b within 5 s: gone",
        "c": "there was no answer about c within 5 s",
    }.items():
        assert isinstance(errand.errors[key], TimedOut)
        assert str(errand.errors[key]) == said


def test_several_errors_in_one_line():
    several = SomeFailed({number: Disconnected(f"e{number}") for number in range(5)}, {9: None})
    assert str(several) == "5 of 6 failed: e0; e1; e2; and 2 more"
    assert several.retriable
    assert not SomeFailed({1: Disconnected("x"), 2: DENIED}, {}).retriable
