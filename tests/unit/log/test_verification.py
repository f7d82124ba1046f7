"""Look-ups of producers, of which a stranger may claim to be one."""

import pytest

from ottla.log.verification import Verifications
from ottla.wire.errors import BrokerError, ErrorCode


def test_a_stranger_with_a_higher_epoch_changes_nothing_for_the_producer() -> None:
    lookups = Verifications()
    own = lookups.begin(7, 3, 100, 0)
    claimed = lookups.begin(7, 4, 0, 0)
    lookups.check(7, 100, own)
    lookups.end(7, claimed, refused=True)
    lookups.check(7, 100, own)
    lookups.end(7, own, refused=False)
    assert len(lookups) == 1


def test_a_later_batch_of_the_same_epoch_waits_for_the_first() -> None:
    lookups = Verifications()
    first, later = lookups.begin(7, 3, 100, 0), lookups.begin(7, 3, 101, 0)
    assert first is later
    with pytest.raises(BrokerError) as error:
        lookups.check(7, 101, later)
    assert error.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    lookups.check(7, 100, first)


def test_a_transaction_that_begins_or_ends_voids_the_look_ups_of_all_epochs() -> None:
    lookups = Verifications()
    made = [lookups.begin(7, epoch, 0, 0) for epoch in (3, 4)]
    lookups.forget(7)
    for each in made:
        with pytest.raises(BrokerError):
            lookups.check(7, 0, each)
        lookups.end(7, each, refused=True)
    assert len(lookups) == 0


def test_what_strangers_leave_behind_is_bounded() -> None:
    lookups = Verifications()
    own = lookups.begin(7, 3, 100, 0)
    for epoch in range(4, 10_000):
        lookups.end(7, lookups.begin(7, epoch, 0, 0), refused=False)
    for producer_id in range(8, 10_000):
        lookups.end(producer_id, lookups.begin(producer_id, 0, 0, 0), refused=False)
    assert len(lookups) <= 1_010
    lookups.check(7, 100, own)
