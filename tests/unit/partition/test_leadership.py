"""The leader's half of replication: what is committed, and who is in sync."""

import pytest

from ottla.metadata.topics import PartitionState
from ottla.partition.follower import Follower
from ottla.partition.leadership import Leadership
from ottla.wire.errors import BrokerError, ErrorCode

LAG_MS = 30_000
OWN_EPOCH = 11


def state(isr=(1, 2, 3), *, leader=1, leader_epoch=0, partition_epoch=0, replicas=(1, 2, 3)):
    return PartitionState(leader, leader_epoch, partition_epoch, replicas, isr, ())


class Stage:
    """A leader whose log is a number."""

    def __init__(self, min_isr=1, **first):
        self.now = 1_000_000
        self.end = 0
        self.high_watermark = 0
        self.barred = set()
        self.leadership = Leadership(
            1,
            lambda who, epoch: who not in self.barred and epoch is not None,
            lag_ms_max=LAG_MS,
            min_isr=min_isr,
        )
        self.leadership.begin(state(**first), 0, self.now)

    def fetch(self, id, offset, epoch=5):
        self.leadership.fetched(id, offset, 0, self.now, self.end, epoch)
        self.raise_watermark()

    def raise_watermark(self, durable=None):
        found = self.leadership.watermark(self.end if durable is None else durable, self.end, self.now)
        self.high_watermark = max(self.high_watermark, found)
        return self.high_watermark

    def expansion(self, id):
        return self.leadership.expansion(id, self.high_watermark, OWN_EPOCH)

    def shrinkage(self):
        return self.leadership.shrinkage(self.end, self.now, OWN_EPOCH)


def test_the_watermark_is_the_least_end_of_those_in_sync():
    stage = Stage()
    stage.end = 10
    assert stage.raise_watermark() == 0
    stage.fetch(2, 10)
    assert stage.high_watermark == 0
    stage.fetch(3, 7)
    assert stage.high_watermark == 7
    stage.fetch(3, 10)
    assert stage.high_watermark == 10


def test_it_is_never_above_what_is_durable_here():
    stage = Stage()
    stage.end = 10
    stage.leadership.fetched(2, 10, 0, stage.now, stage.end, 5)
    stage.leadership.fetched(3, 10, 0, stage.now, stage.end, 5)
    assert stage.raise_watermark(durable=4) == 4
    assert stage.raise_watermark(durable=10) == 10


def test_it_stands_still_under_min_isr():
    stage = Stage(min_isr=2, isr=(1,))
    stage.end = 10
    stage.barred = {2, 3}
    assert stage.raise_watermark() == 0
    assert stage.leadership.is_under_min_isr
    stage.leadership.begin(state((1, 2), partition_epoch=1), 10, stage.now)
    stage.fetch(2, 10)
    assert stage.high_watermark == 10


def test_min_isr_is_no_more_than_there_are_replicas():
    stage = Stage(min_isr=2, isr=(1,), replicas=(1,))
    stage.end = 3
    assert stage.raise_watermark() == 3


def test_a_follower_that_is_about_to_join_is_waited_for():
    stage = Stage(isr=(1,))
    stage.end = 10
    stage.fetch(2, 10)
    assert stage.high_watermark == 10
    stage.end = 20
    stage.fetch(2, 15)
    assert stage.high_watermark == 15
    stage.barred.add(2)
    assert stage.raise_watermark() == 20


def test_one_that_is_behind_for_too_long_is_not_waited_for():
    stage = Stage(isr=(1,))
    stage.end = 10
    stage.fetch(2, 3)
    assert stage.high_watermark == 10


def test_a_follower_joins_once_it_has_what_is_committed_and_of_this_epoch():
    stage = Stage(isr=(1, 3))
    stage.end = 10
    stage.fetch(3, 6)
    stage.fetch(2, 5)
    assert stage.expansion(2) is None
    stage.fetch(2, 6)
    proposal = stage.expansion(2)
    assert proposal.isr == ((1, OWN_EPOCH), (2, 5), (3, 5))
    assert (proposal.leader_epoch, proposal.partition_epoch) == (0, 0)


def test_a_new_leader_lets_nobody_join_before_it_has_the_start_of_the_epoch():
    stage = Stage(isr=(1, 3))
    stage.end = 10
    stage.leadership.begin(state((1, 3), leader_epoch=1, partition_epoch=1), 10, stage.now)
    stage.fetch(2, 9)
    assert stage.expansion(2) is None
    stage.fetch(2, 10)
    assert stage.expansion(2) is not None


def test_who_may_not_be_in_sync_is_not_proposed():
    stage = Stage(isr=(1,))
    stage.barred = {2}
    stage.fetch(2, 0)
    assert stage.expansion(2) is None


def test_whoever_is_proposed_counts_before_the_controller_has_answered():
    stage = Stage(isr=(1,))
    stage.end = 10
    stage.fetch(2, 10)
    proposal = stage.expansion(2)
    stage.end = 20
    stage.now += 2 * LAG_MS
    assert stage.raise_watermark() == 10
    assert stage.expansion(3) is None  # one at a time
    assert stage.leadership.agreed(proposal, (1, 2), 0, 1)
    assert stage.leadership.isr == {1, 2}
    assert stage.raise_watermark() == 10


def test_whoever_is_to_leave_counts_until_the_controller_has_agreed():
    stage = Stage()
    stage.end = 10
    stage.fetch(2, 10)
    stage.now += LAG_MS + 1
    stage.fetch(2, 10)
    proposal = stage.shrinkage()
    assert [id for id, _ in proposal.isr] == [1, 2]
    assert stage.raise_watermark() == 0
    assert stage.leadership.agreed(proposal, (1, 2), 0, 1)
    assert stage.raise_watermark() == 10
    assert stage.shrinkage() is None


def test_one_who_keeps_pace_without_ever_being_level_stays():
    stage = Stage(isr=(1, 2), replicas=(1, 2))
    for _ in range(100):
        stage.end += 10
        stage.now += LAG_MS // 2
        stage.fetch(2, stage.end - 10)
        assert stage.shrinkage() is None
    stage.now += LAG_MS + 1
    stage.end += 1
    assert stage.shrinkage() is not None


def test_a_level_follower_stays_however_quiet():
    stage = Stage(isr=(1, 2), replicas=(1, 2))
    stage.end = 5
    stage.fetch(2, 5)
    stage.now += 100 * LAG_MS
    assert stage.shrinkage() is None


@pytest.mark.parametrize("code", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
def test_after_a_certain_no_another_proposal_may_be_made(code):
    stage = Stage(isr=(1,))
    proposal = stage.expansion(2) or (stage.fetch(2, 0) or stage.expansion(2))
    assert stage.leadership.refused(proposal, code) is False
    assert stage.expansion(2) is not None


@pytest.mark.parametrize("code", [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.INVALID_UPDATE_VERSION])
def test_after_a_doubtful_answer_the_metadata_is_waited_for(code):
    stage = Stage(isr=(1,))
    stage.fetch(2, 0)
    proposal = stage.expansion(2)
    assert stage.leadership.refused(proposal, code) is False
    assert stage.leadership.is_proposing
    stage.leadership.begin(state((1, 2), partition_epoch=1), 0, stage.now)
    assert not stage.leadership.is_proposing
    assert stage.leadership.isr == {1, 2}


def test_what_was_lost_on_the_way_is_asked_again():
    stage = Stage(isr=(1,))
    stage.fetch(2, 0)
    proposal = stage.expansion(2)
    assert stage.leadership.refused(proposal, ErrorCode.REQUEST_TIMED_OUT) is True


def test_an_answer_to_what_is_past_changes_nothing():
    stage = Stage(isr=(1,))
    stage.fetch(2, 0)
    proposal = stage.expansion(2)
    stage.leadership.begin(state((1, 3), leader_epoch=1, partition_epoch=3), 0, stage.now)
    assert not stage.leadership.agreed(proposal, (1, 2), 0, 1)
    assert stage.leadership.isr == {1, 3}


def test_metadata_that_is_older_than_an_answer_is_passed_over():
    stage = Stage(isr=(1,))
    stage.fetch(2, 0)
    assert stage.leadership.agreed(stage.expansion(2), (1, 2), 0, 4)
    stage.leadership.begin(state((1,), partition_epoch=3), 0, stage.now)
    assert stage.leadership.isr == {1, 2}


def test_a_new_leader_knows_nothing_of_its_followers():
    stage = Stage()
    stage.end = 10
    assert stage.raise_watermark() == 0
    assert [each.end_offset for each in stage.leadership.followers.values()] == [-1, -1]


def test_a_fetch_of_an_earlier_life_is_refused():
    follower = Follower(2)
    follower.fetched(5, 0, 0, 10, 7)
    with pytest.raises(BrokerError) as caught:
        follower.fetched(9, 0, 0, 10, 6)
    assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert follower.end_offset == 5


def test_who_has_no_replica_is_told():
    with pytest.raises(BrokerError) as caught:
        Stage().leadership.fetched(9, 0, 0, 0, 0, 1)
    assert caught.value.code is ErrorCode.UNKNOWN_LEADER_EPOCH


def test_records_are_deleted_as_far_as_all_who_live_have_deleted_them():
    stage = Stage()
    stage.leadership.fetched(2, 5, 3, stage.now, 10, 5)
    stage.leadership.fetched(3, 5, 1, stage.now, 10, 5)
    assert stage.leadership.start_offset(4, lambda who: True) == 1
    assert stage.leadership.start_offset(4, lambda who: who != 3) == 3
