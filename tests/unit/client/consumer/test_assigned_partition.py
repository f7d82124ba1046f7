"""One partition's position: jumps, eras, leaders, truncation, replicas."""

from ottla.client.consumer.assigned_partition import NO_NODE, AssignedPartition, FetchPosition, FetchState
from ottla.client.consumer.offset_reset import EARLIEST, LATEST, NONE
from ottla.client.record import OffsetAndMetadata, TopicPartition

PLACE = TopicPartition("t", 0)


def assigned(offset=10, epoch=-1, leader=1, leader_epoch=5):
    made = AssignedPartition(PLACE)
    made.seek(FetchPosition(offset, epoch, leader, leader_epoch))
    return made


def test_begins_without_a_position():
    fresh = AssignedPartition(PLACE)
    assert fresh.needs_offset
    assert not fresh.is_fetchable
    assert fresh.valid_position is None
    assert fresh.lag(committed_only=False) is None


def test_a_bare_offset_is_read_from_at_once():
    made = assigned(offset=7)
    assert made.is_fetchable
    assert (made.position.offset, made.fetch_offset) == (7, 7)


def test_an_offset_with_an_epoch_is_checked_first():
    made = assigned(epoch=3)
    assert made.fetch_state is FetchState.VALIDATING
    assert not made.is_fetchable
    assert made.valid_position is None


def test_an_offset_with_an_epoch_waits_for_a_leader_to_be_checked_with():
    made = assigned(epoch=3, leader=NO_NODE, leader_epoch=-1)
    assert made.is_fetchable
    made.set_leader(1, 5)
    assert made.fetch_state is FetchState.VALIDATING


def test_each_jump_begins_an_era():
    made = assigned()
    position_id = made.position_id
    made.seek(FetchPosition(20))
    made.reset(LATEST)
    assert made.position_id == position_id + 2


def test_advancing_is_no_jump():
    made = assigned()
    position_id = made.position_id
    made.advance(15, 5)
    assert (made.position_id, made.position.offset, made.position.epoch) == (position_id, 15, 5)


def test_a_reset_forgets_and_takes_what_is_found():
    made = assigned()
    made.reset(EARLIEST)
    assert made.fetch_state is FetchState.RESETTING
    assert made.position is None
    assert made.finish_reset(FetchPosition(3, 9, 1, 5), made.position_id)
    assert made.is_fetchable
    assert made.position == FetchPosition(3, -1, 1, 5)


def test_what_is_found_for_an_earlier_era_is_not_taken():
    made = assigned()
    made.reset(EARLIEST)
    position_id = made.position_id
    made.seek(FetchPosition(99))
    assert not made.finish_reset(FetchPosition(3), position_id)
    made.reset(LATEST)
    assert not made.finish_reset(FetchPosition(3), position_id)
    assert made.fetch_state is FetchState.RESETTING


def test_a_new_leader_puts_a_position_with_an_epoch_in_doubt():
    made = assigned()
    made.advance(12, 5)
    made.fetch_offset = 40
    position_id = made.position_id
    made.set_leader(2, 6)
    assert made.fetch_state is FetchState.VALIDATING
    # What was fetched ahead came from the old leader.
    assert made.position_id == position_id + 1
    assert made.fetch_offset == 12


def test_the_same_leader_changes_nothing():
    made = assigned()
    made.advance(12, 5)
    position_id = made.position_id
    made.set_leader(1, 5)
    assert made.position_id == position_id
    assert made.is_fetchable


def test_a_new_leader_ends_reading_from_a_replica():
    made = assigned()
    made.set_preferred_replica(3, 100.0)
    made.set_leader(2, 6)
    assert made.replica_to_read(0.0) == NO_NODE


def doubtful():
    made = assigned(offset=12, epoch=5)
    return made, made.position


def test_a_log_that_has_our_record_is_read_on():
    made, asked = doubtful()
    assert made.validated(asked, 12, 5, may_reset=LATEST) is None
    assert made.is_fetchable
    assert made.position.offset == 12


def test_a_log_that_was_truncated_is_read_from_where_it_diverges():
    made, asked = doubtful()
    assert made.validated(asked, 8, 4, may_reset=LATEST) is None
    assert made.is_fetchable
    assert (made.position.offset, made.position.epoch) == (8, 4)


def test_truncation_without_a_remedy_is_told():
    made, asked = doubtful()
    lost = made.validated(asked, 8, 4, may_reset=NONE)
    assert lost.divergent == OffsetAndMetadata(8, "", 4)
    assert made.fetch_state is FetchState.VALIDATING


def test_a_leader_that_does_not_know_the_epoch_calls_for_a_reset():
    made, asked = doubtful()
    assert made.validated(asked, -1, -1, may_reset=EARLIEST) is None
    assert made.fetch_state is FetchState.RESETTING
    assert made.reset_to is EARLIEST
    made, asked = doubtful()
    assert made.validated(asked, -1, -1, may_reset=NONE).divergent is None


def test_an_answer_to_another_position_changes_nothing():
    made, asked = doubtful()
    made.seek(FetchPosition(30, 5, 1, 5))
    assert made.validated(asked, 8, 4, may_reset=LATEST) is None
    assert made.position.offset == 30
    assert made.fetch_state is FetchState.VALIDATING


def test_what_keeps_a_partition_from_being_fetched():
    for name in ("paused", "revoking", "awaiting_callback"):
        made = assigned()
        setattr(made, name, True)
        assert not made.is_fetchable, name


def test_a_replica_is_read_from_for_a_while():
    made = assigned()
    made.set_preferred_replica(3, 10.0)
    assert made.replica_to_read(9.0) == 3
    made.set_preferred_replica(3, 99.0)
    assert made.replica_to_read(11.0) == NO_NODE, "told again, it does not last longer"
    made.set_preferred_replica(3, 99.0)
    assert made.clear_preferred_replica()
    assert not made.clear_preferred_replica()


def test_lag_counts_to_the_end_that_may_be_read():
    made = assigned(offset=10)
    made.high_watermark, made.last_stable_offset = 25, 20
    assert made.lag(committed_only=False) == 15
    assert made.lag(committed_only=True) == 10
