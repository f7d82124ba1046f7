"""Identifiers Kafka would take, and draws that repeat."""

import pytest

from ottla.wire.uuid import uuid_text
from ottla.world.entropy import RealEntropy, SeededEntropy, as_identifier


@pytest.mark.parametrize("entropy", [RealEntropy(), SeededEntropy(1)], ids=["real", "seeded"])
def test_identifiers_are_version_four_and_never_read_as_an_option(entropy):
    drawn = [entropy.uuid() for _ in range(2000)]
    assert len(set(drawn)) == len(drawn)
    for identifier in drawn:
        assert len(identifier) == 16
        assert identifier[6] >> 4 == 4
        assert identifier[8] >> 6 == 0b10
        assert not uuid_text(identifier).startswith("-")


def test_the_bits_that_are_not_fixed_are_kept():
    assert as_identifier(bytes(16)) == bytes.fromhex("00000000000040008000000000000000")
    assert as_identifier(b"\xff" * 16) == bytes.fromhex("ffffffffffff4fffbfffffffffffffff")


def test_a_dash_in_front_is_drawn_again():
    refused = [first for first in range(256) if as_identifier(bytes([first]) + bytes(15)) is None]
    assert refused == [first for first in range(256) if uuid_text(bytes([first]) + bytes(15))[0] == "-"]
    assert len(refused) == 4


@pytest.mark.parametrize("entropy", [RealEntropy(), SeededEntropy(1)], ids=["real", "seeded"])
def test_draws_stay_in_bounds(entropy):
    assert {entropy.below(3) for _ in range(200)} == {0, 1, 2}
    assert {entropy.below(1) for _ in range(5)} == {0}
    assert all(0 <= entropy.random() < 1 for _ in range(200))


def draws(seed):
    entropy = SeededEntropy(seed)
    return [(entropy.uuid(), entropy.random(), entropy.below(1 << 40)) for _ in range(10)]


def test_a_seed_repeats_itself():
    assert draws(7) == draws(7)
    assert draws(7) != draws(8)
