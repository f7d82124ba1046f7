"""The pace of readers that fall silent: those who are full are read to without a stop, all others as ever."""

import random

import pytest

from ottla.broker.apis import fetch
from ottla.broker.pace import Pace
from tests.unit.broker.test_fetch import pend, request

MB = 1_000_000


def read_ahead(total, takes, brings, holds, *, paced, silence=1000.0, seed=1):
    """A reader that stops for a while when it is full, as librdkafka does; megabytes a second, and how often."""
    chance = random.Random(seed)
    now = queued = done = 0.0
    stops = 0
    pace = Pace(now)
    while done < total:
        if queued >= holds:
            now, queued, stops = now + silence, max(0.0, queued - takes * silence), stops + 1
            continue
        waited = pace.delay(now, MB) if paced else 0.0
        spent = waited + MB / (brings * chance.uniform(0.9, 1.1))
        queued = max(0.0, queued - takes * chance.uniform(0.9, 1.1) * spent) + MB
        now, done = now + spent, done + MB
    return done / now / 1000, stops


def take_turns(total, burst, works, brings, *, paced, seed=1):
    """A program that fetches, works, and fetches again: how many megabytes a second."""
    chance = random.Random(seed)
    now, done, pace = 0.0, 0, Pace(0.0)
    while done < total:
        for _ in range(burst // MB):
            now += (pace.delay(now, MB) if paced else 0.0) + MB / brings
        done += burst
        now += works * chance.uniform(0.9, 1.1)
    return done / now / 1000


# Bytes a millisecond that are taken and that could be brought, and bytes that are held.
READERS = [(430e3, 1000e3, 64e6), (300e3, 1000e3, 64e6), (150e3, 1000e3, 64e6), (43e3, 300e3, 12e6)]


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_that_is_full_again_and_again_is_read_to_as_it_takes(reader):
    slow, often = read_ahead(5_000 * MB, *reader, paced=False)
    quick, seldom = read_ahead(5_000 * MB, *reader, paced=True)
    assert quick > 1.7 * slow
    assert quick > 0.7 * reader[0] / 1000
    assert seldom < often / 5


def test_a_reader_that_takes_all_it_gets_is_never_held_back():
    pace = Pace(0.0)
    assert not any(pace.delay(float(now), MB) for now in range(20_000))


def test_one_that_was_slow_and_is_quick_later_is_not_slow_for_long():
    pace = Pace(0.0)
    now = 0.0
    for number in range(200):  # 20 MB, then more as it is slower, and silent in between
        for _ in range(20 + number):
            now += pace.delay(now, MB) + 1
        now += 1000
        if pace.rate:
            break
    assert pace.rate
    began = now
    while pace.delay(now, MB) > 1:
        now += max(1.0, MB / pace.rate)
    assert now - began < 60_000


@pytest.mark.parametrize(("burst", "works"), [(4, 600), (8, 1000), (50, 700), (64, 2000)])
def test_a_program_that_works_between_its_fetches_does_not_wait_longer(burst, works):
    given = (2_000 * MB, burst * MB, works, 1000e3)
    assert take_turns(*given, paced=True) > 0.98 * take_turns(*given, paced=False)


def test_a_fetch_of_much_after_a_silence_waits_and_one_of_little_does_not(station):
    station.create("t")
    for _ in range(8):
        station.produce("t", count=10, size=90_000)
    wish = request(("t", 0, 0), max_wait_ms=500)

    def burst():
        for _ in range(6):
            assert not isinstance(fetch.handle(wish, 12, station.connection, station.broker), fetch.Pending)
            station.settle(5)

    burst()
    station.settle(1000)
    waits = pend(station, wish)
    station.settle(1)
    assert waits._message is None
    station.settle(60)
    assert waits._message is not None
    station.ask(fetch.API, request(("t", 0, 80), max_wait_ms=0), 12)  # the end: nothing there
    assert station.connection.pace is None
    burst()


def test_who_does_not_want_to_wait_is_not_made_to(station):
    station.create("t")
    for _ in range(8):
        station.produce("t", count=10, size=90_000)
    wish = request(("t", 0, 0), max_wait_ms=0)
    for silence in (5, 5, 5, 5, 5, 1000, 5, 5):
        assert not isinstance(fetch.handle(wish, 12, station.connection, station.broker), fetch.Pending)
        station.settle(silence)
