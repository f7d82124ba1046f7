"""Deadlines by key."""

from ottla.replicated.timers import Timers


def test_what_is_shifted_is_due_in_the_same_order_and_later():
    timers = Timers()
    for key, deadline in (("b", 200), ("a", 100), ("gone", 50)):
        timers.set(key, deadline)
    timers.cancel("gone")
    timers.shift(-3_600_000)
    assert timers.next_deadline == 100 - 3_600_000
    timers.shift(3_600_050)
    assert (timers.due(149), timers.due(300)) == ([], ["a", "b"])
