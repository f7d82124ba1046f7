"""Patterns of clients."""

import time

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


@pytest.mark.parametrize("pattern", ["\\pL" * 150, "[\\pN\\PL]" * 5, "a?" * 8_000, "x" * 20_000, ".{1000}" * 50])
def test_a_pattern_that_takes_long_to_compile_is_refused(pattern: str) -> None:
    """450 bytes took a quarter of a second, and 64 of them could be sent at once."""
    began = time.process_time()
    with pytest.raises(ValueError, match="limit|too large"):
        match(pattern)
    assert time.process_time() - began < 0.2


def test_patterns_as_users_write_them_are_taken() -> None:
    names = [f"team-{number % 17}.orders.region-{number}.events-v2" for number in range(400)]
    for pattern in ("|".join(names), "|".join(f"({name}.*)" for name in names[:300]), "fuzz-.*"):
        matches = match(pattern)
        assert matches(names[42]) == (pattern != "fuzz-.*")
    for pattern in (r"(?i)[a-z0-9._-]+\.(orders|payments)\..*", r"\w{1,249}", r"[^_].{0,200}", r"\p{Lu}.*", "é+"):
        match(pattern)


def test_what_was_compiled_lately_is_not_compiled_again() -> None:
    assert match("one-.*") is match("one-.*")
