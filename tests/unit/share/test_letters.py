"""Records that are given up in a group with a dead-letter topic: told first, and done with after."""

import pytest

from ottla.share.effects import Cause
from ottla.wire.errors import ErrorCode
from tests.unit.share.stage import (
    ACCEPT,
    ACKNOWLEDGED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    GAP,
    LOCK_MS,
    REJECT,
    RELEASE,
    Stage,
    batches,
    said,
)

OFTEN, REJECTED = Cause.TRIED_TOO_OFTEN, Cause.REJECTED


def with_letters(*state: object, **settings: object) -> Stage:
    return Stage(*state, errors_deadletterqueue_topic_name="dlq.t", **settings)


def test_a_rejected_record_is_told_before_it_is_done_with() -> None:
    stage = with_letters()
    stage.acquire("m1", 4, batches(4))
    assert stage.say("m1", said(0, 3, REJECT, ACCEPT, GAP, REJECT)) is None
    assert stage.states == [
        (0, 0, ARCHIVING, 1),
        (1, 1, ACKNOWLEDGED, 1),
        (2, 2, ARCHIVED, 1),
        (3, 3, ARCHIVING, 1),
    ]
    assert stage.written[-1].delivery_complete_count == 2, "what is archiving is not complete"
    assert stage.letters == [(0, 1, 1, REJECTED), (3, 4, 1, REJECTED)]
    assert stage.partition.start_offset == 0
    assert stage.partition.busy
    stage.post()
    assert stage.states == [(3, 3, ARCHIVED, 1)]
    assert stage.written[-2].state_batches[0].delivery_state == ARCHIVED
    assert stage.partition.start_offset == 4
    assert not stage.partition.busy


def test_nothing_is_told_before_it_is_durable() -> None:
    stage = with_letters()
    stage.acquire("m1", 2, batches(2))
    stage.patient = True
    stage.say("m1", said(0, 1, REJECT))
    assert stage.letters == []
    stage.persist()
    assert stage.letters == [(0, 2, 1, REJECTED)]


def test_a_word_that_fails_tells_nothing() -> None:
    stage = with_letters()
    stage.acquire("m1", 2, batches(2))
    assert stage.say("m1", said(0, 0, REJECT), said(1, 5, REJECT)) is ErrorCode.INVALID_REQUEST
    assert stage.letters == []
    stage.patient = True
    stage.say("m1", said(0, 1, REJECT))
    stage.persist(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert stage.letters == []
    stage.patient = False
    assert stage.say("m1", said(0, 1, REJECT)) is None, "the member still holds them"


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_a_lock_that_ran_out_too_often_is_told(code: ErrorCode) -> None:
    stage = with_letters(share_delivery_count_limit=2)
    for _ in range(2):
        stage.acquire("m1", 3, batches(3))
        stage.patient = True
        stage.pass_time(LOCK_MS)
        stage.persist(code)
        stage.patient = False
    assert stage.states == [(0, 2, ARCHIVING, 2)]
    assert stage.letters == [(0, 3, 2, OFTEN)]
    assert stage.acquire("m2", 3, batches(3)) == []
    stage.post()
    assert stage.states == [(0, 2, ARCHIVED, 2)]
    assert stage.partition.start_offset == 3


def test_a_lock_that_ran_out_while_a_word_was_refused_is_told() -> None:
    stage = with_letters(0, [(0, 0, AVAILABLE, 4)])
    stage.acquire("m1", 1, batches(1))
    stage.patient = True
    stage.say("m1", said(0, 0, ACCEPT))
    stage.now += LOCK_MS
    stage.persist(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert stage.letters == [(0, 1, 5, OFTEN)]
    stage.patient = False
    stage.post()
    assert stage.partition.start_offset == 1


def test_a_member_that_leaves_on_the_last_try_has_its_records_told() -> None:
    stage = with_letters(0, [(0, 0, AVAILABLE, 4)])
    stage.acquire("m1", 1, batches(1))
    assert stage.release("m1") is None
    assert stage.letters == [(0, 1, 5, OFTEN)]


def test_a_leader_that_finds_records_archiving_tells_them_again() -> None:
    state = [(0, 1, ARCHIVING, 2), (2, 2, ACKNOWLEDGED, 1), (3, 3, ARCHIVING, 5), (4, 4, ARCHIVED, 1)]
    stage = Stage(0, state)  # whatever the group's topic is now
    assert stage.letters == [(0, 2, 2, REJECTED), (3, 4, 5, OFTEN)]
    assert stage.partition.start_offset == 0
    assert stage.partition.window.complete_count == 2
    stage.post()
    assert stage.partition.start_offset == 5


def test_letters_of_neighbours_are_ended_one_by_one() -> None:
    stage = with_letters()
    stage.acquire("m1", 6, batches(6))
    for offset in (0, 1, 2, 4, 5):
        assert stage.say("m1", said(offset, offset, REJECT)) is None
    first, *rest = stage._unposted
    stage._unposted = rest
    stage.do(stage.partition.dead_lettered(first))
    assert stage.states == [(0, 0, ARCHIVED, 1)]
    assert stage.partition.start_offset == 1
    stage.post()
    assert stage.partition.start_offset == 3
    assert stage.say("m1", said(3, 3, ACCEPT)) is None
    assert stage.partition.start_offset == 6


def test_a_letter_for_what_the_log_no_longer_has_ends_quietly() -> None:
    stage = with_letters()
    stage.acquire("m1", 4, batches(4))
    stage.say("m1", said(0, 3, REJECT))
    writes = len(stage.written)
    stage.partition.log_start_moved(4)
    stage.post()
    assert len(stage.written) == writes
    assert not stage.partition.busy


def test_a_fenced_leader_tells_nothing() -> None:
    stage = with_letters()
    stage.acquire("m1", 2, batches(2))
    stage.patient = True
    stage.pass_time(LOCK_MS)
    stage.persist(ErrorCode.FENCED_LEADER_EPOCH)
    assert stage.lost == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert stage.letters == []


def test_released_records_are_not_told() -> None:
    stage = with_letters()
    stage.acquire("m1", 2, batches(2))
    stage.say("m1", said(0, 1, RELEASE))
    assert stage.letters == []
    assert stage.acquire("m1", 2, batches(2)) == [(0, 1, 2)]
