"""Patterns of clients."""

import pytest

from ottla.broker.expression import match


def test_names_match_wholly() -> None:
    matches = match("orders-[0-9]+")
    assert matches("orders-17")
    assert not matches("orders-")
    assert not matches("my-orders-17")
    assert not matches("orders-17-old")


@pytest.mark.parametrize("pattern", ["(", "a**", "(?=ahead)", r"\1"])
def test_what_is_no_pattern_is_said_so(pattern: str) -> None:
    with pytest.raises(ValueError, match="."):
        match(pattern)


def test_a_pattern_that_would_take_for_ever_takes_no_time() -> None:
    assert not match("(a*)*b")("a" * 100_000)
