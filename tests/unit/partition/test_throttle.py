"""Throttles of replication: who is meant, and when it is too fast."""

from typing import Any, NamedTuple

import pytest

from ottla.partition.throttle import Throttles


class Replica(NamedTuple):
    topic: str
    index: int


class Stand:
    def __init__(self, rate: int | None = 1000, windows: int = 3) -> None:
        self.now_ms = 0
        self.values: dict[str, Any] = {
            "replication.quota.window.num": windows,
            "replication.quota.window.size.seconds": 1,
        }
        if rate is not None:
            self.values["leader.replication.throttled.rate"] = rate
        self.throttle = Throttles(2, lambda: self.now_ms, lambda: self.values).giving


def test_nothing_is_held_back_where_nothing_is_named() -> None:
    stand = Stand(rate=0)
    assert not stand.throttle
    stand.throttle.record(Replica("t", 0), 10**9)
    assert not stand.throttle.holds_back(Replica("t", 0), in_sync=False)


@pytest.mark.parametrize(
    ("entries", "covered"),
    [(["*"], [0, 1, 7]), (["0:2", "1:3", "7:2"], [0, 7]), (["1:3"], []), ([], [])],
)
def test_replicas_are_named_by_partition_and_broker(entries: list[str], covered: list[int]) -> None:
    throttle = Stand().throttle
    throttle.name("t", entries)
    assert [index for index in (0, 1, 7) if throttle.covers(Replica("t", index))] == covered
    assert not throttle.covers(Replica("other", 0))
    throttle.name("t", [])
    assert not throttle


def test_a_burst_is_paid_for_until_its_window_has_passed() -> None:
    stand = Stand()
    stand.throttle.name("t", ["*"])
    replica = Replica("t", 0)
    assert not stand.throttle.holds_back(replica, in_sync=False)
    stand.throttle.record(replica, 2500)
    assert stand.throttle.holds_back(replica, in_sync=False)
    assert not stand.throttle.holds_back(replica, in_sync=True)
    stand.now_ms = 2400
    assert stand.throttle.holds_back(replica, in_sync=False)
    stand.now_ms = 2600  # 2,500 bytes in 2.6 s
    assert not stand.throttle.holds_back(replica, in_sync=False)
    stand.throttle.record(replica, 1000)
    assert stand.throttle.holds_back(replica, in_sync=False)
    stand.now_ms = 3001  # the burst is out of all windows
    assert not stand.throttle.holds_back(replica, in_sync=False)


def test_without_a_rate_there_is_no_end() -> None:
    stand = Stand(rate=None)
    stand.throttle.name("t", ["*"])
    stand.throttle.record(Replica("t", 0), 10**12)
    assert not stand.throttle.holds_back(Replica("t", 0), in_sync=False)
