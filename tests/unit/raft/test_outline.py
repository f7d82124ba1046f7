"""Outlines: how the end of one log fits into another."""

import pytest

from ottla.raft.outline import End, Fit, Outline
from ottla.raft.snapshot import BOOTSTRAP_ID, SnapshotId

# Offsets 0-4 in epoch 1, 5-9 in epoch 3, 10-11 in epoch 4.
EPOCHS = ((1, 0), (3, 5), (4, 10))


@pytest.fixture
def outline() -> Outline:
    return Outline(0, 12, EPOCHS)


@pytest.mark.parametrize(
    ("epoch", "end"),
    [(0, End(0, 0)), (1, End(5, 1)), (2, End(5, 1)), (3, End(10, 3)), (4, End(12, 4)), (9, End(12, 4))],
)
def test_where_an_epoch_ends(outline: Outline, epoch: int, end: End) -> None:
    assert outline.end_of(epoch) == end


@pytest.mark.parametrize(
    ("offset", "epoch", "fit", "end"),
    [
        (0, 0, Fit.VALID, End(0, 0)),
        (3, 1, Fit.VALID, End(3, 1)),
        (5, 1, Fit.VALID, End(5, 1)),
        (12, 4, Fit.VALID, End(12, 4)),
        (6, 1, Fit.DIVERGING, End(5, 1)),
        (7, 2, Fit.DIVERGING, End(5, 1)),
        (13, 4, Fit.DIVERGING, End(12, 4)),
        (12, 5, Fit.DIVERGING, End(12, 4)),
    ],
)
def test_how_a_log_fits(outline: Outline, offset: int, epoch: int, fit: Fit, end: End) -> None:
    assert outline.fit(offset, epoch) == (fit, end)


@pytest.mark.parametrize(
    ("diverging", "cut"),
    [
        (End(5, 1), 5),
        (End(3, 1), 3),
        (End(8, 3), 8),
        (End(20, 3), 10),
        (End(7, 2), 5),
        (End(4, 0), 4),
        (End(99, 0), 12),
    ],
)
def test_where_a_follower_cuts(outline: Outline, diverging: End, cut: int) -> None:
    assert outline.cut_for(diverging) == cut


def test_below_the_log_a_snapshot_is_needed() -> None:
    outline = Outline(0, 12, EPOCHS, [BOOTSTRAP_ID])
    outline.add_snapshot(SnapshotId(7, 3))
    outline.add_snapshot(SnapshotId(10, 3))
    outline.trim(SnapshotId(7, 3))
    newest = End(10, 3)
    assert outline.snapshots == [(7, 3), (10, 3)]
    assert outline.epochs == [(3, 7), (4, 10)]
    assert outline.fit(3, 1) == (Fit.SNAPSHOT, newest)
    assert outline.fit(7, 1) == (Fit.SNAPSHOT, newest), "same offset, another epoch"
    assert outline.fit(9, 2) == (Fit.SNAPSHOT, newest), "its epoch is gone"
    assert outline.fit(7, 3) == (Fit.VALID, End(7, 3))
    assert outline.fit(11, 3) == (Fit.DIVERGING, End(10, 3))


def test_nothing_is_left_but_the_snapshot() -> None:
    outline = Outline(0, 12, EPOCHS)
    outline.reset(SnapshotId(20, 6))
    assert (outline.start_offset, outline.end_offset, outline.last_epoch) == (20, 20, 6)
    assert outline.fit(20, 6) == (Fit.VALID, End(20, 6))
    assert outline.fit(20, 5) == (Fit.SNAPSHOT, End(20, 6))
    outline.append(22, 7)
    assert (outline.end_offset, outline.last_epoch, outline.epochs) == (22, 7, [(7, 20)])


def test_the_epoch_in_force_stays_when_all_is_trimmed() -> None:
    outline = Outline(0, 12, EPOCHS)
    outline.add_snapshot(SnapshotId(12, 4))
    outline.trim(SnapshotId(12, 4))
    assert (outline.start_offset, outline.end_offset, outline.last_epoch) == (12, 12, 4)


def test_cutting_forgets_epochs(outline: Outline) -> None:
    outline.truncate(7)
    assert (outline.end_offset, outline.last_epoch) == (7, 3)
    outline.truncate(5)
    assert (outline.end_offset, outline.last_epoch) == (5, 1)
    outline.append(6, 5)
    assert outline.epochs == [(1, 0), (5, 5)]


def test_an_empty_log_is_of_no_epoch() -> None:
    assert Outline().last_epoch == 0
    assert Outline(snapshots=[BOOTSTRAP_ID]).last_epoch == 0
    assert Outline(snapshots=[BOOTSTRAP_ID]).newest_snapshot is None, (
        "what formatting left is not sent around"
    )
