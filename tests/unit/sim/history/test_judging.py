"""Histories written by hand: what is told apart, and what is not held against anybody."""

import pytest

from ottla.sim.history.episode import Malformed
from ottla.sim.history.op import Deed, Kind, Op, Poll, Send, Step
from ottla.sim.history.verdict import judge


class Hand:
    """Writes a history down."""

    def __init__(self) -> None:
        self.ops: list[Op] = []

    def did(self, process: int, deed: Deed, kind: Kind, *steps: Step) -> "Hand":
        """Something from beginning to end."""
        begun = tuple(Send(step.key, step.value) if isinstance(step, Send) else Poll() for step in steps)
        return self.line(process, "invoke", deed, *begun).line(process, kind, deed, *steps)

    def line(self, process: int, kind: Kind, deed: Deed, *steps: Step) -> "Hand":
        self.ops.append(Op(len(self.ops), len(self.ops), process, kind, deed, steps))
        return self

    @property
    def names(self) -> set[str]:
        return set(judge(Op.from_line(op.to_line()) for op in self.ops).names)


def read(*seen: tuple[int, str], key: str = "k") -> Poll:
    return Poll(tuple((key, offset, value) for offset, value in seen))


def test_a_doubtful_send_may_be_there_or_not() -> None:
    hand = Hand().did(1, "send", "info", Send("k", "a")).did(1, "send", "ok", Send("k", "b", 1))
    assert hand.did(2, "poll", "ok", read((1, "b"))).names == set()
    assert hand.did(3, "poll", "ok", read((0, "a"), (1, "b"))).names == set()


def test_a_send_with_an_offset_is_acknowledged_though_its_companion_is_in_doubt() -> None:
    hand = Hand().did(1, "send", "info", Send("k", "a", 0), Send("k", "b"))
    assert hand.names == {"unseen"}
    assert hand.did(2, "poll", "ok", read((1, "b"))).names == {"lost-write"}


def test_a_transaction_in_doubt_is_whole() -> None:
    hand = Hand().did(1, "txn", "info", Send("k", "a", 0), Send("l", "b", 0))
    assert hand.names == set()
    hand.did(2, "poll", "ok", read((0, "a")))
    assert hand.names == {"unseen"}
    assert hand.did(2, "poll", "ok", read((0, "b"), key="l")).names == set()


def test_what_has_no_end_is_in_doubt() -> None:
    hand = Hand().line(1, "invoke", "send", Send("k", "a"))
    assert hand.names == set()
    assert hand.did(2, "poll", "ok", read((4, "a"))).names == set()


def test_markers_and_what_was_called_off_leave_no_hole() -> None:
    hand = Hand().did(1, "txn", "ok", Send("k", "a", 0)).did(1, "txn", "fail", Send("k", "b"))
    hand.did(1, "txn", "ok", Send("k", "c", 5))
    assert hand.did(2, "poll", "ok", read((0, "a"), (5, "c"))).names == set()


def test_reads_of_a_failed_transaction_count() -> None:
    hand = Hand().did(1, "send", "ok", Send("k", "a", 0)).did(3, "send", "ok", Send("k", "b", 1))
    hand.did(2, "txn", "fail", Send("k", "x"), read((0, "b")))
    assert "inconsistent-offsets" in hand.names


def test_a_consumer_that_is_assigned_anew_may_begin_anywhere() -> None:
    hand = Hand().did(1, "send", "ok", *(Send("k", str(n), n) for n in range(4)))
    hand.did(2, "poll", "ok", read(*((n, str(n)) for n in range(4))))
    assert hand.names == set()
    hand.line(2, "invoke", "assign").line(2, "ok", "assign")
    assert hand.did(2, "poll", "ok", read((0, "0"))).names == set()
    assert hand.did(2, "poll", "ok", read((2, "2"))).names == {"poll-skip"}


def test_a_circle_over_three_is_found() -> None:
    hand = Hand()
    for number in range(3):
        hand.line(number, "invoke", "txn", Send(f"k{number}", "v"), Poll())
    for number in range(3):
        after = (number + 1) % 3
        hand.line(number, "ok", "txn", Send(f"k{number}", "v", 0), read((0, "v"), key=f"k{after}"))
    assert hand.names == {"G1c"}


def test_what_is_no_history_is_refused() -> None:
    with pytest.raises(Malformed):
        judge(Hand().did(1, "send", "ok").line(1, "ok", "send").ops)
    twice = Hand().line(1, "invoke", "poll").line(1, "invoke", "poll").ops
    with pytest.raises(Malformed):
        judge(twice)
