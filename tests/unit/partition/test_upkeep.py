"""Chores run again and again, at the interval of the day, and survive their own failures."""

from ottla.partition.upkeep import Chore, for_each


class Timers:
    def __init__(self):
        self.calls = []

    def call_later(self, delay, callback):
        self.calls.append((delay, callback))
        return self

    def cancel(self):
        self.calls.clear()

    def fire(self):
        delay, callback = self.calls.pop(0)
        callback()
        return delay


def test_a_chore_repeats_at_the_interval_that_holds_now():
    timers, done, interval = Timers(), [], [1000]
    Chore("count", lambda: interval[0], lambda: done.append(1), timers, print)
    assert timers.fire() == 1.0
    interval[0] = 5000
    timers.fire()
    assert timers.fire() == 5.0
    assert len(done) == 3


def test_a_failing_chore_is_reported_and_tried_again():
    timers, reports = Timers(), []

    def fail():
        raise OSError("disk on fire")

    chore = Chore("clean", lambda: 10, fail, timers, reports.append)
    timers.fire()
    timers.fire()
    assert len(reports) == 2 and "disk on fire" in reports[0] and "clean" in reports[0]
    chore.stop()
    assert not timers.calls


def test_one_that_fails_does_not_keep_the_next_from_its_turn():
    done, reports = [], []

    def work(item):
        done.append(item)
        if item in "bd":
            raise OSError("no room")
        if item == "e":
            raise ValueError("a slip")

    for_each("abcdef", work, lambda item: f"upkeep of {item}", reports.append)
    assert done == list("abcdef")
    first, bug = reports
    assert first == "upkeep of b has failed, as has that of 2 more, and is tried again later: no room"
    assert "please report it" in bug and "upkeep of e" in bug and "in work" in bug
    reports.clear()
    for_each("ac", work, str, reports.append)
    assert not reports
