"""Which records a member is handed."""

import pytest

from ottla.share.acquire import BatchFacts
from ottla.wire.errors import ErrorCode
from tests.unit.share.stage import (
    ACCEPT,
    ACKNOWLEDGED,
    ARCHIVED,
    AVAILABLE,
    LOCK_MS,
    REJECT,
    RELEASE,
    Stage,
    batches,
    said,
)


def test_new_records_go_out_in_whole_record_batches() -> None:
    stage = Stage()
    read = batches(4, 10, 15)
    assert stage.acquire("m1", 5, read) == [(0, 9, 1)]
    assert stage.partition.next_offset() == 10
    assert stage.acquire("m2", 100, read) == [(10, 14, 1)]
    assert (stage.partition.start_offset, stage.partition.end_offset) == (0, 15)
    assert stage.written == []


def test_nothing_is_handed_out_for_nothing() -> None:
    stage = Stage(start_offset=20)
    assert stage.acquire("m1", 0, batches(30, start=20)) == []
    assert stage.acquire("m1", 10, []) == []
    assert stage.acquire("m1", 10, batches(10), at=0) == []
    stage.partition.fence()
    assert stage.acquire("m1", 10, batches(30, start=20)) == []


def test_pieces_are_cut_where_record_batches_begin() -> None:
    stage = Stage()
    assert stage.acquire("m1", 100, batches(3, 6, 9, 12, 13), size=5) == [(0, 5, 1), (6, 11, 1), (12, 12, 1)]


def test_a_record_batch_from_before_the_start_counts_from_the_start() -> None:
    stage = Stage(start_offset=4)
    assert stage.acquire("m1", 100, batches(10)) == [(4, 9, 1)]


def test_a_record_limit_is_kept_to_the_record() -> None:
    stage = Stage()
    read = batches(10, 20)
    assert stage.acquire("m1", 3, read, limit=True) == [(0, 2, 1)]
    # The rest of the batch is there for the next, who may have another way to ask.
    assert stage.partition.next_offset() == 3
    assert stage.acquire("m2", 4, read, limit=True) == [(3, 6, 1)]
    assert stage.acquire("m3", 5, read) == [(7, 9, 1), (10, 19, 1)]


def test_what_was_released_is_handed_out_before_what_is_new() -> None:
    stage = Stage()
    read = batches(5, 10, 15)
    stage.acquire("m1", 5, read)
    stage.acquire("m2", 5, read)
    assert stage.say("m1", said(0, 4, RELEASE)) is None
    assert stage.partition.next_offset() == 0
    assert stage.acquire("m3", 8, read) == [(0, 4, 2), (10, 14, 1)]


def test_a_full_window_hands_out_nothing_new() -> None:
    stage = Stage(share_partition_max_record_locks=10)
    read = batches(6, 12, 18)
    # The second batch begins within the limit, and is not torn.
    assert stage.acquire("m1", 100, read) == [(0, 11, 1)]
    assert not stage.partition.can_acquire()
    assert stage.acquire("m2", 100, read) == []
    assert stage.say("m1", said(3, 4, RELEASE)) is None
    assert stage.partition.can_acquire()
    assert stage.acquire("m2", 100, read) == [(3, 4, 2)]
    assert stage.say("m1", said(0, 2, ACCEPT)) is None
    assert stage.acquire("m2", 100, read) == [(12, 17, 1)]


def test_offsets_that_the_log_lacks_are_passed_over() -> None:
    stage = Stage()
    read = [BatchFacts(0, 4), BatchFacts(10, 14)]
    assert stage.acquire("m1", 5, read) == [(0, 4, 1)]
    assert stage.acquire("m1", 5, read) == [(10, 14, 1)]
    assert len(stage.partition.window) == 15
    # Nobody was handed what is in the hole.
    assert stage.say("m1", said(5, 9, ACCEPT)) is ErrorCode.INVALID_REQUEST
    assert stage.say("m1", said(0, 7, ACCEPT)) is ErrorCode.INVALID_REQUEST
    # One word for both, over the hole.
    assert stage.say("m1", said(0, 14, ACCEPT)) is None
    assert stage.partition.start_offset == 15


def test_a_hole_at_the_start_is_not_in_flight() -> None:
    stage = Stage()
    assert stage.acquire("m1", 5, [BatchFacts(10, 14)]) == [(10, 14, 1)]
    assert (stage.partition.start_offset, len(stage.partition.window)) == (10, 5)


def test_released_records_that_were_compacted_away_are_done_with() -> None:
    stage = Stage()
    stage.acquire("m1", 20, batches(5, 10))
    stage.say("m1", said(0, 9, RELEASE))
    assert stage.acquire("m2", 20, [BatchFacts(7, 9)]) == [(7, 9, 2)]
    assert stage.say("m2", said(7, 9, ACCEPT)) is None
    assert stage.partition.start_offset == 10


def test_the_log_start_takes_records_from_their_holders() -> None:
    stage = Stage()
    stage.acquire("m1", 10, batches(10))
    stage.partition.log_start_moved(4)
    assert stage.partition.start_offset == 4
    assert stage.say("m1", said(0, 3, ACCEPT)) is None
    assert stage.written == []
    assert stage.say("m1", said(0, 9, ACCEPT)) is None
    assert stage.states == [(4, 9, ACKNOWLEDGED, 1)]
    assert (stage.partition.start_offset, stage.partition.end_offset) == (10, 10)
    stage.partition.log_start_moved(100)
    assert stage.partition.next_offset() == 100
    stage.partition.log_start_moved(50)
    assert stage.partition.start_offset == 100


def test_the_log_start_may_pass_a_word_that_is_on_its_way() -> None:
    stage = Stage()
    stage.patient = True
    stage.acquire("m1", 10, batches(10))
    assert stage.say("m1", said(0, 9, ACCEPT)) == "waits"
    stage.partition.log_start_moved(4)
    stage.persist()
    assert stage.outcomes == {1: None}
    assert stage.partition.start_offset == 10


def test_records_of_aborted_transactions_are_nobodys() -> None:
    stage = Stage()
    read = [
        BatchFacts(0, 2, 9, transactional=True),
        BatchFacts(3, 5, 8, transactional=True),
        BatchFacts(6, 6, 8, transactional=True, aborts=True),
        BatchFacts(7, 9, 8, transactional=True),
        BatchFacts(10, 10, 9, transactional=True),
    ]
    assert stage.acquire("m1", 100, read, aborted=[(8, 3)]) == [(0, 2, 1), (6, 10, 1)]
    assert stage.say("m1", said(3, 5, ACCEPT)) is not None
    assert stage.say("m1", said(0, 2, ACCEPT), said(6, 10, ACCEPT)) is None
    assert stage.partition.start_offset == 11
    # Without the list, as under read_uncommitted, they are like any other.
    assert Stage().acquire("m1", 100, read) == [(0, 10, 1)]


def test_a_window_full_of_aborted_records_does_not_get_stuck() -> None:
    stage = Stage(share_partition_max_record_locks=100)
    for start in range(0, 1000, 100):
        read = [BatchFacts(start, start + 99, 8, transactional=True)]
        assert stage.acquire("m1", 500, read, aborted=[(8, 0)]) == []
        assert stage.partition.start_offset == start + 100


def test_state_from_disk_with_holes_is_read_anew() -> None:
    stage = Stage(10, [(15, 19, ACKNOWLEDGED, 1), (20, 24, AVAILABLE, 2), (30, 34, ARCHIVED, 5)])
    assert (stage.partition.start_offset, stage.partition.end_offset) == (10, 35)
    assert stage.partition.next_offset() == 10
    read = batches(15, 25, 30, 35, 40, start=10)
    assert stage.acquire("m1", 3, read) == [(10, 14, 1)]
    assert stage.partition.next_offset() == 20
    assert stage.acquire("m2", 100, read) == [(20, 24, 3), (25, 29, 1), (35, 39, 1)]
    assert stage.say("m1", said(10, 14, ACCEPT)) is None
    assert stage.partition.start_offset == 20


def test_a_hole_in_the_state_may_be_a_hole_in_the_log() -> None:
    stage = Stage(10, [(15, 19, ACKNOWLEDGED, 1), (30, 34, AVAILABLE, 1)])
    assert stage.acquire("m1", 100, batches(40, start=22)) == [(22, 29, 1), (30, 34, 2), (35, 39, 1)]
    stage.say("m1", said(22, 39, ACCEPT))
    assert stage.partition.start_offset == 40


def test_state_from_disk_that_is_done_with_is_skipped() -> None:
    stage = Stage(0, [(0, 4, ACKNOWLEDGED, 1), (5, 9, ARCHIVED, 5), (10, 11, AVAILABLE, 1)])
    assert stage.partition.start_offset == 10


@pytest.mark.parametrize(
    ("count", "first", "second"),
    [
        (1, [(0, 99, 2)], []),
        (2, [(0, 99, 3)], []),
        (3, [(0, 49, 4)], [(50, 99, 4)]),
        (4, [(0, 0, 5)], [(1, 1, 5)]),
    ],
)
def test_a_record_often_tried_goes_out_in_small_company(count: int, first: list, second: list) -> None:
    stage = Stage(0, [(0, 99, AVAILABLE, count)])
    assert stage.acquire("m1", 500, batches(100)) == first
    assert stage.acquire("m2", 500, batches(100)) == second


def test_a_record_often_tried_does_not_join_others() -> None:
    stage = Stage(0, [(0, 9, AVAILABLE, 1), (10, 19, AVAILABLE, 4), (20, 29, AVAILABLE, 1)])
    assert stage.acquire("m1", 500, batches(30)) == [(0, 9, 2)]
    assert stage.acquire("m1", 500, batches(30)) == [(10, 10, 5)]


def test_two_tries_are_never_throttled() -> None:
    stage = Stage(0, [(0, 9, AVAILABLE, 1)], share_delivery_count_limit=2)
    assert stage.acquire("m1", 500, batches(10)) == [(0, 9, 2)]
    stage.say("m1", said(0, 9, RELEASE))
    assert stage.partition.start_offset == 10


def test_every_record_comes_out_at_last() -> None:
    stage = Stage(share_delivery_count_limit=5, errors_deadletterqueue_topic_name="dlq.t")
    read = batches(8)
    told: list[int] = []
    for _ in range(60):
        for first, last, count in stage.acquire("m1", 500, read):
            assert count <= 5
            kinds = [REJECT if at == 5 else RELEASE for at in range(first, last + 1)]
            assert stage.say("m1", said(first, last, *kinds)) is None
            told += [offset for letter in stage.letters for offset in range(*letter[:2])]
            stage.post()
        if stage.partition.start_offset == 8:
            break
    assert stage.partition.start_offset == 8
    assert sorted(told) == list(range(8))


def test_locks_last_as_long_as_they_are_set_to() -> None:
    stage = Stage()
    stage.acquire("m1", 10, batches(10))
    assert stage.partition.deadline == stage.now + LOCK_MS


def test_a_last_try_is_alone_even_among_its_own() -> None:
    stage = Stage(share_delivery_count_limit=3)
    read = batches(10)
    stage.acquire("m1", 10, read)
    stage.say("m1", said(5, 9, RELEASE))
    assert stage.acquire("m2", 10, read) == [(5, 9, 2)]
    stage.say("m2", said(5, 9, RELEASE))
    stage.say("m1", said(0, 4, RELEASE))
    assert stage.acquire("m3", 10, read) == [(0, 4, 2)]
    assert stage.acquire("m3", 10, read) == [(5, 5, 3)]


def test_locks_on_what_the_log_lost_are_forgotten() -> None:
    stage = Stage()
    stage.acquire("m1", 10, batches(5, 10))
    stage.acquire("m1", 10, batches(5, 10, 15))
    stage.partition.log_start_moved(12)
    assert stage.partition.deadline == stage.now + LOCK_MS
    stage.partition.log_start_moved(15)
    assert stage.partition.deadline is None
