"""Chores run again and again, at the interval of the day, and survive their own failures."""

from ottla.partition.upkeep import Chore


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
