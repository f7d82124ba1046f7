"""Which replica a consumer is sent to."""

from types import SimpleNamespace

import pytest

from ottla.broker.selector import NOBODY, preferred_replica

RACKS = {1: "a", 2: "b", 3: "b", 4: "c", 5: None}


def stand(isr=(1, 2, 3, 4, 5), fenced=(), ends=None, caught_up=None):
    brokers = {
        id: SimpleNamespace(rack=rack, fenced=id in fenced, listeners={"PLAINTEXT": None})
        for id, rack in RACKS.items()
    }
    followers = {
        id: SimpleNamespace(
            start_offset=10, end_offset=(ends or {}).get(id, 100), caught_up_ms=(caught_up or {}).get(id, 0)
        )
        for id in (2, 3, 4, 5)
    }
    broker = SimpleNamespace(node_id=1, image=SimpleNamespace(brokers=brokers))
    leadership = SimpleNamespace(followers=followers, isr=frozenset(isr))
    return broker, SimpleNamespace(leadership=leadership)


def chosen(rack, offset=50, listener="PLAINTEXT", **how):
    return preferred_replica(*stand(**how), offset, rack, listener)


@pytest.mark.parametrize(("rack", "expected"), [("a", NOBODY), ("c", 4), ("elsewhere", NOBODY), ("", NOBODY)])
def test_the_rack_decides(rack, expected):
    assert chosen(rack) == expected


def test_the_one_that_has_most_is_chosen_then_the_one_that_was_level_last():
    assert chosen("b", ends={2: 100, 3: 90}) == 2
    assert chosen("b", caught_up={2: 7, 3: 5}) == 2
    assert chosen("b") == 3


def test_who_cannot_serve_is_left_out():
    assert chosen("c", isr=(1, 2, 3)) == NOBODY
    assert chosen("c", fenced=(4,)) == NOBODY
    assert chosen("c", offset=101) == NOBODY
    assert chosen("c", offset=9) == NOBODY
    assert chosen("c", listener="OTHER") == NOBODY
    assert chosen("c", offset=100) == chosen("c", offset=10) == 4


def test_a_partition_without_followers_sends_nobody_away():
    broker, _ = stand()
    assert preferred_replica(broker, SimpleNamespace(leadership=None), 0, "b", "PLAINTEXT") == NOBODY
