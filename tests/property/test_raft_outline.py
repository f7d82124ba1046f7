"""Outlines against plain lists: two logs that part find the place where they do, and cut no more than they must."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.raft.outline import End, Fit, Outline

# A log is a list of the epochs of its records. Two records of the same offset and epoch are the same record, and then
# so is all before them, because an epoch has one leader, and that one wrote them in order.
HISTORIES = st.lists(st.integers(1, 6), max_size=12).map(sorted)


def outline_of(log: list[int]) -> Outline:
    outline = Outline()
    for offset, epoch in enumerate(log):
        outline.append(offset + 1, epoch)
    return outline


def last_epoch(log: list[int]) -> int:
    return log[-1] if log else 0


@given(st.data(), HISTORIES)
def test_a_follower_ends_up_with_a_part_of_the_leaders_log(data: st.DataObject, leader: list[int]) -> None:
    # What they share, and what the follower got from leaders whose epochs nobody else has records of.
    shared = data.draw(st.integers(0, len(leader)))
    taken = set(leader)
    own = data.draw(
        st.lists(st.integers(1, 8).filter(lambda epoch: epoch not in taken), max_size=6).map(sorted)
    )
    follower = leader[:shared] + [epoch for epoch in own if epoch >= last_epoch(leader[:shared])]
    theirs = outline_of(leader)
    for _ in range(len(leader) + len(follower) + 2):
        ours = outline_of(follower)
        fit, end = theirs.fit(len(follower), last_epoch(follower))
        if fit is Fit.VALID:
            break
        assert fit is Fit.DIVERGING
        cut = ours.cut_for(end)
        assert cut < len(follower), "each round cuts something"
        follower = follower[:cut]
    assert fit is Fit.VALID
    assert follower == leader[: len(follower)]
    assert len(follower) >= shared, "what they share is never cut"


@given(HISTORIES, st.integers(0, 8))
def test_the_end_of_an_epoch(log: list[int], epoch: int) -> None:
    known = [each for each in log if each <= epoch]
    end = outline_of(log).end_of(epoch)
    if known:
        assert end == End(len(known), known[-1])
    else:
        assert end.offset == 0


@given(HISTORIES, st.integers(0, 12))
def test_cutting_is_making_it_shorter(log: list[int], size: int) -> None:
    outline = outline_of(log)
    size = min(size, len(log))
    outline.truncate(size)
    shorter = outline_of(log[:size])
    assert (outline.epochs, outline.end_offset) == (shorter.epochs, shorter.end_offset)
