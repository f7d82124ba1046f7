"""What becomes of the records that members hold."""

import pytest

from ottla.share.acknowledgement import check
from ottla.share.effects import ReadState
from ottla.share.partition import NO_OFFSET, Phase, SharePartition
from ottla.wire.errors import BrokerError, ErrorCode
from tests.unit.share.stage import (
    ACCEPT,
    ACKNOWLEDGED,
    ARCHIVED,
    AVAILABLE,
    DEFAULTS,
    GAP,
    LOCK_MS,
    REJECT,
    RELEASE,
    RENEW,
    TOPIC,
    Stage,
    State,
    batches,
    said,
)

INVALID = ErrorCode.INVALID_RECORD_STATE


def test_accepted_records_are_durable_before_they_count() -> None:
    stage = Stage()
    stage.patient = True
    stage.acquire("m1", 10, batches(10))
    assert stage.say("m1", said(0, 9, ACCEPT)) == "waits"
    assert stage.partition.start_offset == 0
    (written,) = stage.written
    assert stage.states == [(0, 9, ACKNOWLEDGED, 1)]
    assert (written.partition, written.state_epoch, written.leader_epoch) == (3, 2, 7)
    assert (written.start_offset, written.delivery_complete_count) == (0, 10)
    stage.persist()
    assert stage.outcomes == {1: None}
    assert (stage.partition.start_offset, stage.partition.end_offset) == (10, 10)
    assert stage.partition.deadline is None


def test_each_offset_has_its_own_fate() -> None:
    stage = Stage()
    stage.acquire("m1", 10, batches(10))
    kinds = [ACCEPT, ACCEPT, RELEASE, REJECT, GAP, ACCEPT, RELEASE, RELEASE, ACCEPT, ACCEPT]
    assert stage.say("m1", said(0, 9, *kinds)) is None
    assert stage.states == [
        (0, 1, ACKNOWLEDGED, 1),
        (2, 2, AVAILABLE, 1),
        (3, 3, ARCHIVED, 1),
        (4, 4, ARCHIVED, 1),
        (5, 5, ACKNOWLEDGED, 1),
        (6, 7, AVAILABLE, 1),
        (8, 9, ACKNOWLEDGED, 1),
    ]
    assert stage.written[-1].delivery_complete_count == 7
    assert stage.letters == [], "nobody asked for any"
    assert stage.partition.start_offset == 2
    assert stage.acquire("m2", 10, batches(10)) == [(2, 2, 2), (6, 7, 2)]


def test_spans_that_end_up_alike_are_one_again() -> None:
    stage = Stage()
    stage.acquire("m1", 1000, batches(1000))
    for offset in range(0, 1000, 2):
        assert stage.say("m1", said(offset, offset, RELEASE)) is None
    for offset in range(1, 1000, 2):
        assert stage.say("m1", said(offset, offset, RELEASE)) is None
    (flight,) = stage.partition.window.flights
    assert len(flight.spans) == 1
    assert stage.acquire("m2", 10, batches(1000)) == [(0, 999, 2)]


def test_a_word_about_another_members_records_is_refused() -> None:
    stage = Stage()
    stage.acquire("m1", 5, batches(5, 10))
    stage.acquire("m2", 5, batches(5, 10))
    assert stage.say("m1", said(5, 9, ACCEPT)) is INVALID
    assert stage.say("m1", said(0, 9, ACCEPT)) is INVALID
    # Taken as a whole or not at all.
    assert stage.written == []
    assert stage.say("m1", said(0, 4, ACCEPT)) is None


def test_nothing_is_said_twice() -> None:
    stage = Stage()
    stage.acquire("m1", 10, batches(10))
    stage.patient = True
    assert stage.say("m1", said(0, 4, ACCEPT)) == "waits"
    assert stage.say("m1", said(0, 4, RELEASE)) is INVALID
    assert stage.say("m1", said(5, 6, ACCEPT), said(6, 6, ACCEPT)) is INVALID
    stage.persist()
    assert stage.say("m1", said(5, 9, ACCEPT)) == "waits"


def test_a_word_about_what_was_never_handed_out_makes_no_sense() -> None:
    stage = Stage()
    assert stage.say("m1", said(0, 4, ACCEPT)) is INVALID
    stage.acquire("m1", 5, batches(5))
    assert stage.say("m1", said(0, 5, ACCEPT)) is ErrorCode.INVALID_REQUEST
    assert stage.say("m1", said(7, 8, ACCEPT)) is ErrorCode.INVALID_REQUEST
    assert stage.say("m1", said(0, 4, 9)) is ErrorCode.INVALID_REQUEST


def test_a_lock_that_runs_out_frees_the_record_at_once() -> None:
    stage = Stage()
    stage.acquire("m1", 5, batches(5))
    stage.patient = True
    stage.pass_time(LOCK_MS - 1)
    assert stage.written == []
    freed = stage.freed
    stage.pass_time(1)
    assert stage.states == [(0, 4, AVAILABLE, 1)]
    assert stage.freed > freed
    assert stage.acquire("m2", 5, batches(5)) == [(0, 4, 2)]
    assert stage.say("m1", said(0, 4, ACCEPT)) is INVALID
    stage.persist()
    assert stage.partition.deadline == stage.now + LOCK_MS


def test_part_of_what_a_member_holds_may_run_out() -> None:
    stage = Stage()
    stage.acquire("m1", 10, batches(10))
    stage.pass_time(10_000)
    assert stage.say("m1", said(3, 5, RENEW)) is None
    assert stage.say("m1", said(8, 9, ACCEPT)) is None
    stage.pass_time(LOCK_MS - 10_000)
    assert stage.states == [(0, 2, AVAILABLE, 1), (6, 7, AVAILABLE, 1)]
    assert stage.partition.deadline == stage.now + 10_000
    assert stage.say("m1", said(3, 5, ACCEPT)) is None


def test_locks_are_renewed_only_where_the_group_allows_it() -> None:
    stage = Stage(share_renew_acknowledge_enable=False)
    stage.acquire("m1", 10, batches(10))
    assert stage.say("m1", said(0, 9, RENEW)) is INVALID


def test_a_record_is_given_up_after_enough_tries() -> None:
    stage = Stage(share_delivery_count_limit=2)
    for _ in range(2):
        stage.acquire("m1", 5, batches(5))
        stage.pass_time(LOCK_MS)
    assert stage.states == [(0, 4, ARCHIVED, 2)]
    assert stage.partition.start_offset == 5


def test_a_release_too_many_gives_up_as_well() -> None:
    stage = Stage(0, [(0, 0, AVAILABLE, 4)])
    stage.acquire("m1", 5, batches(1))
    assert stage.say("m1", said(0, 0, RELEASE)) is None
    assert stage.states == [(0, 0, ARCHIVED, 5)]


def test_a_closed_session_gives_back_what_it_held() -> None:
    stage = Stage()
    stage.acquire("m1", 5, batches(5, 10))
    stage.acquire("m2", 5, batches(5, 10))
    stage.say("m1", said(0, 1, ACCEPT))
    assert stage.release("m1") is None
    assert stage.states == [(2, 4, AVAILABLE, 1)]
    assert stage.release("m1") is None
    assert stage.acquire("m3", 5, batches(5, 10)) == [(2, 4, 2)]
    assert stage.say("m2", said(5, 9, ACCEPT)) is None


def test_a_write_that_fails_changes_nothing() -> None:
    stage = Stage()
    stage.patient = True
    stage.acquire("m1", 5, batches(5))
    stage.say("m1", said(0, 1, ACCEPT), said(2, 4, RELEASE))
    stage.persist(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert stage.outcomes == {1: ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert stage.lost == []
    assert stage.acquire("m2", 5, batches(5)) == []
    assert stage.say("m1", said(0, 4, ACCEPT)) == "waits"
    stage.persist()
    assert stage.partition.start_offset == 5


def test_a_lock_may_run_out_while_a_write_fails() -> None:
    stage = Stage()
    stage.patient = True
    stage.acquire("m1", 5, batches(5))
    stage.say("m1", said(0, 4, ACCEPT))
    stage.pass_time(LOCK_MS)
    assert len(stage.written) == 1
    stage.persist(ErrorCode.NOT_COORDINATOR)
    assert stage.acquire("m2", 5, batches(5)) == [(0, 4, 2)]


@pytest.mark.parametrize(
    ("said_by_coordinator", "told"),
    [
        (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.FENCED_STATE_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_ID_NOT_FOUND),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_fenced_partition_is_of_no_use(said_by_coordinator: ErrorCode, told: ErrorCode) -> None:
    stage = Stage()
    stage.patient = True
    stage.acquire("m1", 5, batches(5, 10))
    stage.say("m1", said(0, 4, ACCEPT))
    stage.persist(said_by_coordinator)
    assert stage.outcomes == {1: told}
    assert stage.lost == [told]
    assert stage.acquire("m1", 5, batches(5, 10)) == []


def test_loading_is_asked_for_once() -> None:
    partition = SharePartition("group", TOPIC, 3, 7, DEFAULTS.__getitem__)
    (effect,) = partition.open().after
    assert isinstance(effect, ReadState)
    assert (effect.group_id, effect.partition.partition, effect.partition.leader_epoch) == ("group", 3, 7)
    with pytest.raises(BrokerError) as refused:
        partition.open()
    assert refused.value.code is ErrorCode.LEADER_NOT_AVAILABLE
    partition.loaded(State(start_offset=NO_OFFSET), reset_offset=42)
    assert (partition.start_offset, partition.next_offset()) == (42, 42)
    assert partition.open().after == ()


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (State(error_code=ErrorCode.FENCED_LEADER_EPOCH), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (State(error_code=ErrorCode.INVALID_REQUEST), ErrorCode.UNKNOWN_SERVER_ERROR),
        (
            State(start_offset=5, state_batches=[State.StateBatch(first_offset=3, last_offset=6)]),
            ErrorCode.UNKNOWN_SERVER_ERROR,
        ),
        (
            State(start_offset=5, state_batches=[State.StateBatch(first_offset=6, last_offset=5)]),
            ErrorCode.UNKNOWN_SERVER_ERROR,
        ),
    ],
)
def test_loading_may_fail(state: State, code: ErrorCode) -> None:
    partition = SharePartition("group", TOPIC, 3, 7, DEFAULTS.__getitem__)
    partition.open()
    with pytest.raises(BrokerError) as refused:
        partition.loaded(state)
    assert refused.value.code is code
    assert partition.phase is Phase.FAILED
    with pytest.raises(BrokerError):
        partition.open()


@pytest.mark.parametrize(
    "batch",
    [
        said(5, 4, ACCEPT),
        said(0, 4),
        said(0, 4, ACCEPT, ACCEPT),
        said(0, 0, 5),
        said(0, 0, -1),
        said(0, 0, RENEW),
    ],
)
def test_words_that_make_no_sense(batch: object) -> None:
    with pytest.raises(BrokerError) as refused:
        check([batch], may_renew=False)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_words_in_order() -> None:
    check([said(0, 2, ACCEPT), said(3, 4, ACCEPT, RENEW)], may_renew=True)
    with pytest.raises(BrokerError):
        check([said(3, 4, ACCEPT), said(0, 2, ACCEPT)], may_renew=True)


def test_the_start_waits_for_a_word_that_is_on_its_way() -> None:
    stage = Stage()
    stage.patient = True
    stage.acquire("m1", 10, batches(10))
    stage.say("m1", said(0, 4, ACCEPT))
    stage.say("m1", said(5, 9, ACCEPT))
    first, second = stage.waiting
    stage.waiting = [second]
    stage.persist()
    assert stage.partition.start_offset == 0
    stage.say("m2", said(0, 0, ACCEPT))
    stage.waiting = [first]
    stage.persist()
    assert stage.partition.start_offset == 10


def test_the_start_stops_at_a_word_that_is_on_its_way() -> None:
    stage = Stage()
    stage.patient = True
    stage.acquire("m1", 10, batches(10))
    stage.say("m1", said(0, 4, ACCEPT))
    stage.say("m1", said(5, 9, ACCEPT))
    second = stage.waiting.pop()
    stage.persist()
    assert stage.partition.start_offset == 5
    stage.waiting = [second]
    stage.persist(ErrorCode.NOT_COORDINATOR)
    assert stage.partition.start_offset == 5
    assert stage.say("m1", said(5, 9, ACCEPT)) == "waits"
