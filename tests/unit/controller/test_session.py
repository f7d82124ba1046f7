"""Who is gone, and who only seems to be."""

import random

import pytest

from ottla.controller.attention import COUNTED_MAX_MS, PULSE_MS, STALL_MS, Attention
from ottla.controller.session import Patience, Sessions, warnings
from ottla.metadata.settings.layers import BrokerValues

PATIENCE = Patience(session_ms=9_000, silence_ms=2_000, grace_ms=250, pace_ms=2_000)
QUICK_MS, SLOW_MS = 500, 2_000


class Watch:
    """Sessions, looked at as often as they ask for, and brokers with their heartbeats."""

    def __init__(self, *brokers: int, pace_ms: int = QUICK_MS, patience: Patience = PATIENCE) -> None:
        self.now = 5_000_000
        self.sessions = Sessions(1, patience, self.now)
        self.paces = dict.fromkeys(brokers, pace_ms)
        self.gone: dict[int, int] = {}  # when each was found to be

    def learn(self) -> "Watch":
        """Let the brokers beat for long enough to be known."""
        self.run(8_000)
        assert self.gone == {}
        return self

    def run(self, ms: int, *silent: int) -> dict[int, int]:
        """Let time pass; return who was found gone, and after how long."""
        began = self.now
        for _ in range(ms):
            self.now += 1
            for broker, pace_ms in self.paces.items():
                # Not all at the same moment.
                if broker not in silent and (self.now + broker * 97) % pace_ms == 0:
                    self.sessions.touch(broker, self.now)
            while (deadline := self.sessions.deadline) is not None and deadline <= self.now:
                stale = self.sessions.stale(self.now)
                if stale is None:
                    break
                self.sessions.remove(stale)
                self.gone[stale] = self.now - began
        return self.gone


def test_a_broker_whose_heartbeats_come_often_is_missed_within_about_two_seconds() -> None:
    watch = Watch(2, 3).learn()
    assert list(watch.run(4_000, 2)) == [2]
    assert PATIENCE.silence_ms - QUICK_MS <= watch.gone[2] <= PATIENCE.silence_ms + 2 * PULSE_MS


def test_a_broker_whose_heartbeats_come_seldom_is_waited_for() -> None:
    """Apache Kafka's brokers send one in two seconds by default."""
    watch = Watch(2, 3, pace_ms=SLOW_MS).learn()
    assert list(watch.run(12_000, 2)) == [2]
    assert 4 * SLOW_MS - SLOW_MS <= watch.gone[2] <= PATIENCE.session_ms + SLOW_MS


def test_a_burst_of_heartbeats_is_no_pace() -> None:
    watch = Watch(2, 3, pace_ms=3_000)
    for _ in range(30):
        watch.now += 10
        watch.sessions.touch(2, watch.now)
        watch.sessions.touch(3, watch.now)
    watch.learn()


def test_nobody_waits_longer_than_for_a_session() -> None:
    watch = Watch(2, 3, pace_ms=8_000)
    watch.run(17_000)
    assert list(watch.run(12_000, 2)) == [2]
    assert watch.gone[2] <= PATIENCE.session_ms + PULSE_MS
    short = Watch(2, 3, pace_ms=200, patience=Patience(500, 2_000, 100, 200)).learn()
    short.run(2_000, 2)
    assert short.gone[2] <= 500 + PULSE_MS, "a session that is set to be short is short"


@pytest.mark.parametrize("seed", range(20))
def test_a_second_without_a_word_now_and_then_alarms_nobody(seed: int) -> None:
    chance = random.Random(seed)
    watch = Watch(2, 3).learn()
    for _ in range(20):
        watch.run(chance.randrange(1, 1_000), 2)
        watch.run(chance.randrange(500, 4_000))
    assert watch.gone == {}, f"seed {seed}"


def test_a_closed_connection_counts_at_once() -> None:
    watch = Watch(2, 3).learn()
    watch.sessions.disconnected(2, watch.now)
    assert list(watch.run(3_000, 2)) == [2]
    assert PATIENCE.grace_ms <= watch.gone[2] <= QUICK_MS + PATIENCE.grace_ms + 2 * PULSE_MS


def test_one_whose_host_refuses_connections_is_gone_at_once() -> None:
    watch = Watch(2, 3, pace_ms=SLOW_MS).learn()
    watch.sessions.disconnected(2, watch.now)
    watch.sessions.disconnected(2, watch.now, refused=True)
    watch.run(10, 2)
    assert list(watch.gone) == [2]


def test_one_that_spoke_since_it_refused_is_there() -> None:
    watch = Watch(2, 3).learn()
    watch.sessions.disconnected(2, watch.now, refused=True)
    watch.sessions.touch(2, watch.now)
    assert watch.run(4_000) == {}
    watch.sessions.disconnected(2, watch.now)
    watch.run(10, 2)
    assert watch.gone == {}, "the refusal was of another life"


def test_a_broker_that_seldom_speaks_is_not_judged_before_it_was_to_speak() -> None:
    watch = Watch(2, 3, pace_ms=SLOW_MS).learn()
    watch.sessions.disconnected(2, watch.now)
    watch.run(3_000, 2)
    assert PATIENCE.grace_ms <= watch.gone[2] <= SLOW_MS + PATIENCE.grace_ms + 2 * PULSE_MS


def test_a_broker_that_connects_anew_is_there() -> None:
    watch = Watch(2, 3).learn()
    watch.sessions.disconnected(2, watch.now)
    assert not watch.sessions.is_live(2, watch.now), "another process may take its place"
    watch.now += 200
    watch.sessions.touch(2, watch.now)
    assert watch.sessions.is_live(2, watch.now)
    assert watch.run(5_000) == {}


def test_a_new_controller_waits_for_brokers_it_has_not_heard() -> None:
    watch = Watch()
    watch.sessions.expect(1, watch.now)
    assert watch.sessions.deadline is None, "its own node has no session"
    for broker in (2, 3):
        watch.sessions.expect(broker, watch.now)
    watch.paces = {3: QUICK_MS}
    assert list(watch.run(10_000)) == [2]
    assert 5_000 <= watch.gone[2] <= PATIENCE.session_ms


def test_the_last_controller_is_waited_for_as_one_that_speaks_often() -> None:
    watch = Watch(3)
    watch.sessions.expect(2, watch.now)
    watch.sessions.expect(3, watch.now)
    watch.sessions.doubt(2, watch.now)
    watch.sessions.doubt(9, watch.now)  # of which nothing is known
    watch.run(9_000)
    assert list(watch.gone) == [2]
    assert PATIENCE.silence_ms <= watch.gone[2] <= PATIENCE.silence_ms + 2 * PULSE_MS


def test_who_was_heard_by_an_earlier_controller_only_keeps_its_seat_for_a_beat() -> None:
    watch = Watch()
    for broker in (2, 3):
        watch.sessions.expect(broker, watch.now)
    watch.paces = {3: 200}
    watch.run(400)
    assert watch.sessions.is_live(2, watch.now)
    watch.run(200)
    assert not watch.sessions.is_live(2, watch.now), "another process may take its place"
    assert watch.sessions.is_live(3, watch.now)
    assert watch.gone == {}, "but it is not given up for that"
    watch.sessions.touch(2, watch.now)
    assert watch.sessions.is_live(2, watch.now)
    watch.run(700, 2)
    assert watch.sessions.is_live(2, watch.now), "and has a whole session once it was heard"


def test_a_new_controller_may_be_told_who_is_gone() -> None:
    watch = Watch()
    for broker in (2, 3):
        watch.sessions.expect(broker, watch.now)
    watch.sessions.disconnected(2, watch.now)
    watch.paces = {3: QUICK_MS}
    watch.run(1_000)
    assert watch.gone[2] <= PATIENCE.grace_ms + 2 * PULSE_MS


@pytest.mark.parametrize("pause_ms", [600, 1_200, 1_400, 2_000, 60_000, 3_600_000])
def test_a_controller_that_was_stopped_fences_nobody(pause_ms: int) -> None:
    watch = Watch(2, 3, 4).learn()
    watch.now += pause_ms
    # It may be the timer that is served first, and the sockets some time later.
    watch.run(500, 2, 3, 4)
    assert watch.gone == {}
    assert watch.run(5_000) == {}


def test_connections_that_closed_while_the_controller_was_stopped_prove_nothing() -> None:
    watch = Watch(2, 3, 4).learn()
    watch.now += 30_000
    for broker in (2, 3, 4):
        watch.sessions.disconnected(broker, watch.now)
    watch.run(1_500, 2, 3, 4)
    assert watch.gone == {}
    watch.run(3_000, 4)
    assert list(watch.gone) == [4], "who is gone indeed is missed by its silence"


def test_a_refusal_right_after_a_stall_proves_nothing() -> None:
    watch = Watch(2, 3).learn()
    watch.now += 10_000
    watch.sessions.disconnected(2, watch.now, refused=True)
    assert watch.run(500, 2) == {}


def test_a_controller_that_is_called_late_again_and_again_still_finds_out() -> None:
    watch = Watch(2, 3).learn()
    watch.paces = {}
    calls = 0
    while watch.sessions.stale(watch.now) != 2:
        watch.now += 1_000
        watch.sessions.touch(3, watch.now)
        calls += 1
    assert calls <= 8, "half of the time counts"


def test_a_clock_that_is_set_back_or_ahead_changes_nothing() -> None:
    for jump_ms in (-3_600_000, 3_600_000):
        watch = Watch(2, 3).learn()
        watch.now += jump_ms
        assert watch.run(5_000) == {}
        watch.run(4_000, 2)
        assert watch.gone[2] <= PATIENCE.silence_ms + 2 * PULSE_MS


def test_silence_of_all_is_laid_to_oneself() -> None:
    watch = Watch(2, 3, 4).learn()
    watch.run(8_000, 2, 3, 4)
    assert watch.gone == {}
    watch.run(3_000, 2, 3, 4)
    assert set(watch.gone) == {2, 3, 4}
    alone = Watch(2).learn()
    alone.run(3_000, 2)
    assert alone.gone[2] <= PATIENCE.silence_ms + 2 * PULSE_MS, "one broker's silence is its own"


def test_only_what_was_listened_to_counts() -> None:
    attention = Attention(1_000)
    assert attention.listen(1_100) == 100
    assert attention.listen(1_100 + STALL_MS) == 100 + COUNTED_MAX_MS
    assert attention.resumed_ms < 0
    assert attention.listen(10_000) == 100 + 2 * COUNTED_MAX_MS
    assert attention.resumed_ms == attention.listened_ms
    assert attention.listen(9_000) == 100 + 2 * COUNTED_MAX_MS
    assert attention.listen(9_010) == 110 + 2 * COUNTED_MAX_MS


# What an operator asks for

RAISED = {"broker.session.timeout.ms": "30000"}


def patience_of(settings: dict[str, str]) -> Patience:
    return Patience.from_settings(BrokerValues(settings))


def test_by_default_brokers_are_missed_fast() -> None:
    assert patience_of({}) == PATIENCE
    assert patience_of({"broker.session.timeout.ms": "9000"}) == PATIENCE
    assert patience_of({"broker.session.timeout.ms": "4000"}).silence_ms == 2_000
    assert warnings(BrokerValues({})) == []


def test_a_raised_session_is_obeyed_in_silence() -> None:
    watch = Watch(2, 3, patience=patience_of(RAISED)).learn()
    assert list(watch.run(40_000, 2)) == [2]
    assert 30_000 - QUICK_MS <= watch.gone[2] <= 30_000 + 2 * PULSE_MS


@pytest.mark.parametrize("refused", [False, True])
def test_a_raised_session_is_obeyed_after_a_close(refused: bool) -> None:
    watch = Watch(2, 3, patience=patience_of(RAISED)).learn()
    watch.sessions.disconnected(2, watch.now, refused=refused)
    assert not watch.sessions.is_live(2, watch.now), "a process that takes its place need not wait"
    assert watch.run(29_000, 2) == {}
    assert list(watch.run(3_000, 2)) == [2]


def test_a_process_that_came_in_anothers_place_does_not_wait_for_its_session() -> None:
    watch = Watch(2, 3, patience=patience_of(RAISED)).learn()
    watch.sessions.replaced(2, watch.now)
    assert list(watch.run(2 * PULSE_MS, 2)) == [2]


def test_the_shorter_ways_hold_beside_a_raised_session_when_they_are_set_and_that_is_said() -> None:
    settings = {**RAISED, "ottla.broker.silence.ms": "3000"}
    assert patience_of(settings) == Patience(30_000, 3_000, 30_000, 2_000)
    assert warnings(BrokerValues(settings)) == [
        "ottla.broker.silence.ms=3000 ends a broker's session before broker.session.timeout.ms=30000 does"
    ]
    settings = {**RAISED, "ottla.broker.disconnect.grace.ms": "100"}
    assert patience_of(settings) == Patience(30_000, 30_000, 100, 2_000)
    assert len(warnings(BrokerValues(settings))) == 1


def test_a_seat_is_kept_for_a_beat_whatever_the_session() -> None:
    sessions = Sessions(1, patience_of(RAISED), 1_000)
    sessions.expect(2, 1_000)
    assert sessions.is_live(2, 1_400)
    assert not sessions.is_live(2, 1_600)
