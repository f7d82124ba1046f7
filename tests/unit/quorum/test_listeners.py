"""Whoever hears of committed images hears of all of them, whatever becomes of the others who do."""

import pytest

from ottla.metadata.fold import Change
from ottla.quorum.listeners import Listeners


def breaks(delta, image):
    raise TypeError("a bug")


def test_a_listener_that_breaks_is_reported_and_the_others_hear_of_the_image():
    reports, heard = [], []
    listeners = Listeners(reports.append)
    listeners.add(breaks)
    listeners.add(lambda delta, image: heard.append((delta, image)))
    listeners.is_started = True
    listeners.tell(Change("delta", "image"))
    assert heard == [("delta", "image")]
    assert len(reports) == 1
    assert "TypeError: a bug" in reports[0]


def test_a_start_ends_with_a_listener_that_breaks():
    listeners = Listeners(pytest.fail)
    listeners.add(breaks)
    with pytest.raises(TypeError):
        listeners.tell(Change("delta", "image"))
