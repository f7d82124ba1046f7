"""State batches that no share partition has, as anybody may send them."""

import pytest

from ottla.share.batches import StateBatch, combine


@pytest.mark.timeout(20)
@pytest.mark.parametrize("first", [120, 75, 2**63 - 1])
def test_a_batch_that_ends_before_it_begins_says_nothing(first):
    backwards, whole = StateBatch(first, 74, 1, 2), StateBatch(74, 239, 0, 1)
    assert combine([backwards], [whole], -1) == (whole,)
    assert combine([whole], [backwards], 3) == (whole,)
    assert combine([], [backwards], -1) == ()
