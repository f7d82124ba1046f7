"""The follower: it appends what fits, cuts what does not, and gives receipts for what is on disk."""

import pytest

from ottla.raft.election_state import ElectionState
from ottla.raft.event import Failure
from ottla.raft.log_view import Buffer
from ottla.raft.news import hear
from ottla.raft.settings import TOPIC
from ottla.sim.quorum.log import SimLog
from ottla.wire.batch import Batch
from ottla.wire.errors import ErrorCode, ProtocolError
from ottla.wire.messages.end_quorum_epoch import EndQuorumEpochRequest
from ottla.wire.messages.fetch import FetchRequest
from tests.unit.raft.bench import Bench, batch, begin_request, directory, fetch_response, vote_request


def offset_asked(bench: Bench) -> tuple[int, int, int]:
    ((node_id, message),) = bench.sent(FetchRequest)
    part = message.topics[0].partitions[0]
    return node_id, part.fetch_offset, part.last_fetched_epoch


def asked_again_later(bench: Bench, leader_id: int, offset: int, epoch: int) -> None:
    """What it sent did not help: somebody else is asked who leads; it is asked again after a moment, not at once."""
    assert offset_asked(bench) == (3, offset, epoch)
    bench.answer(3, fetch_response(leader_id, bench.raft.epoch, code=ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert not bench.sent(FetchRequest)
    bench.wait(50)
    assert offset_asked(bench) == (leader_id, offset, epoch)


def test_a_leader_is_found_by_asking_around() -> None:
    bench = Bench(epochs=[1]).follow(3, epoch=2)
    assert bench.state == ElectionState(2, 3)
    assert offset_asked(bench) == (3, 1, 1)


def test_a_leader_makes_itself_known() -> None:
    bench = Bench(epochs=[1])
    response = bench.ask(begin_request(3, 2))
    part = response.topics[0].partitions[0]
    assert (part.error_code, part.leader_id, part.leader_epoch) == (0, 3, 2)
    assert (bench.role, bench.state) == ("Follower", ElectionState(2, 3))


def test_a_leader_of_the_past_is_told_so() -> None:
    bench = Bench(epochs=[1]).follow(3, epoch=5)
    part = bench.ask(begin_request(2, 4)).topics[0].partitions[0]
    assert (part.error_code, part.leader_id, part.leader_epoch) == (ErrorCode.FENCED_LEADER_EPOCH, 3, 5)


def test_a_request_for_another_copy_is_refused_and_its_news_taken() -> None:
    bench = Bench(epochs=[1])
    part = bench.ask(begin_request(3, 2, directory_id=directory(9))).topics[0].partitions[0]
    assert part.error_code == ErrorCode.INVALID_VOTER_KEY
    assert bench.raft.leader_id == 3


def test_a_second_leader_of_an_epoch_is_refused() -> None:
    """Anybody can say that it leads; the one we follow stays the one."""
    bench = Bench(epochs=[1]).follow(3, epoch=2)
    part = bench.ask(begin_request(2, 2)).topics[0].partitions[0]
    assert (part.error_code, part.leader_id, part.leader_epoch) == (ErrorCode.INVALID_REQUEST, 3, 2)
    kind = EndQuorumEpochRequest.TopicData
    ended = kind(topic_name=TOPIC, partitions=[kind.PartitionData(leader_id=2, leader_epoch=2)])
    part = bench.ask(EndQuorumEpochRequest(topics=[ended])).topics[0].partitions[0]
    assert (part.error_code, part.leader_id, part.leader_epoch) == (ErrorCode.INVALID_REQUEST, 3, 2)
    assert bench.state == ElectionState(2, 3)


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH])
def test_an_answer_that_names_a_second_leader_of_an_epoch_is_not_believed(code: ErrorCode) -> None:
    bench = Bench(epochs=[1]).follow(3, epoch=2)
    assert bench.sent(FetchRequest)
    bench.answer(3, fetch_response(leader_id=2, epoch=2, code=code))
    assert bench.state == ElectionState(2, 3)


@pytest.mark.parametrize("epoch", [2 + (1 << 24) + 1, 2**31 - 2, 2**31 - 1])
def test_an_epoch_that_no_cluster_can_have_reached_is_refused(epoch: int) -> None:
    """It would leave none for the next election."""
    bench = Bench(epochs=[1]).follow(3, epoch=2)
    part = bench.ask(begin_request(2, epoch)).topics[0].partitions[0]
    assert (part.error_code, part.leader_epoch) == (ErrorCode.INVALID_REQUEST, 2)
    part = bench.ask(vote_request(2, epoch, 1, 1)).topics[0].partitions[0]
    assert (part.error_code, part.vote_granted, part.leader_epoch) == (ErrorCode.INVALID_REQUEST, False, 2)
    assert bench.sent(FetchRequest)
    bench.answer(3, fetch_response(leader_id=3, epoch=epoch, code=ErrorCode.FENCED_LEADER_EPOCH))
    assert bench.state == ElectionState(2, 3)


def test_elections_that_were_missed_are_made_up_for() -> None:
    bench = Bench(epochs=[1]).follow(3, epoch=2)
    part = bench.ask(begin_request(2, 1 << 24)).topics[0].partitions[0]
    assert (part.error_code, part.leader_id, part.leader_epoch) == (ErrorCode.NONE, 2, 1 << 24)


def test_two_leaders_of_an_epoch_are_the_end() -> None:
    bench = Bench(epochs=[1]).follow(3, epoch=2)
    with pytest.raises(AssertionError, match="both lead epoch 2"):
        hear(bench.raft.replica, 2, 2, (), bench.now)


def test_records_are_appended_and_the_watermark_follows() -> None:
    bench = Bench(epochs=[1]).follow(2, epoch=2)
    bench.sent(FetchRequest)
    bench.answer(2, fetch_response(2, 2, batch(1, 2) + batch(2, 2), high_watermark=2))
    assert (bench.raft.end_offset, bench.committed) == (3, 2)
    assert offset_asked(bench) == (2, 3, 2)
    bench.answer(2, fetch_response(2, 2, high_watermark=9))
    assert bench.committed == 3, "no more is committed here than is here"


def test_a_fetch_waits_until_what_it_acknowledges_is_on_disk() -> None:
    bench = Bench(epochs=[1]).follow(2, epoch=2)
    bench.sent(FetchRequest)
    bench.syncs = False
    bench.answer(2, fetch_response(2, 2, batch(1, 2)))
    assert not bench.sent(FetchRequest)
    bench.sync()
    assert offset_asked(bench) == (2, 2, 2)


def test_nothing_is_said_in_an_epoch_before_it_is_on_disk() -> None:
    bench = Bench(epochs=[1])
    bench.sent(FetchRequest)
    bench.syncs = False
    assert bench.ask(begin_request(3, 2)) is None
    assert len(bench.held) == 2, "the answer, and the first fetch"
    bench.said.clear()
    bench.sync()
    assert len(bench.said) == 2


def test_a_diverging_log_is_cut() -> None:
    bench = Bench(epochs=[1, 1, 2, 2]).follow(2, epoch=5)
    bench.sent(FetchRequest)
    bench.answer(2, fetch_response(2, 5, diverging=(2, 1)))
    assert (bench.ready.truncate_to, bench.raft.end_offset) == (None, 2)
    assert offset_asked(bench) == (2, 2, 1)


def test_a_committed_record_is_never_cut() -> None:
    bench = Bench(epochs=[1, 1, 1]).follow(2, epoch=2)
    bench.sent(FetchRequest)
    bench.answer(2, fetch_response(2, 2, high_watermark=3))
    bench.sent(FetchRequest)
    bench.answer(2, fetch_response(2, 2, diverging=(2, 1)))
    assert bench.raft.end_offset == 3
    asked_again_later(bench, 2, 3, 1)


@pytest.mark.parametrize("diverging", [(-5, 0), (0, 0), (3, 1), (9, 9)])
def test_a_log_is_not_cut_below_its_beginning_nor_nowhere(diverging: tuple[int, int]) -> None:
    bench = Bench(epochs=[1, 1, 1]).follow(2, epoch=2)
    bench.sent(FetchRequest)
    bench.answer(2, fetch_response(2, 2, high_watermark=1))
    bench.sent(FetchRequest)
    bench.answer(2, fetch_response(2, 2, diverging=diverging))
    assert bench.raft.end_offset == 3
    asked_again_later(bench, 2, 3, 1)


@pytest.mark.parametrize("snapshot", [(1, 1), (3, 1), (9, 3)])
def test_a_snapshot_that_leads_back_or_is_of_no_epoch_yet_is_not_fetched(snapshot: tuple[int, int]) -> None:
    bench = Bench(epochs=[1, 1, 1]).follow(2, epoch=2)
    bench.sent(FetchRequest)
    bench.answer(2, fetch_response(2, 2, snapshot=snapshot))
    asked_again_later(bench, 2, 3, 1)


@pytest.mark.parametrize(
    "records",
    [
        batch(2, 2),  # a gap
        batch(0, 2),  # what is there already
        batch(1, 3),  # of an epoch that is none of ours (KAFKA-18723)
        batch(1, 0),  # of an epoch that has passed
        batch(1, 2)[:-1],  # cut off
        batch(1, 2)[:-1] + b"\xff",  # damaged
        bytes(100),
    ],
)
def test_what_does_not_fit_is_not_appended(records: bytes) -> None:
    bench = Bench(epochs=[1]).follow(2, epoch=2)
    bench.sent(FetchRequest)
    bench.answer(2, fetch_response(2, 2, records))
    assert bench.raft.end_offset == 1
    asked_again_later(bench, 2, 1, 1)


def test_what_could_not_be_read_back_is_not_appended(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(_: SimLog, data: Buffer, position: int) -> None:
        if Batch.parse(data, position).base_offset == 2:
            raise ProtocolError("nobody can read it")

    monkeypatch.setattr(SimLog, "check", check)
    bench = Bench(epochs=[1]).follow(2, epoch=2)
    bench.sent(FetchRequest)
    bench.answer(2, fetch_response(2, 2, batch(1, 2) + batch(2, 2), high_watermark=3))
    assert (bench.raft.end_offset, bench.committed) == (2, 2)
    assert offset_asked(bench) == (2, 2, 2)
    bench.answer(2, fetch_response(2, 2, batch(2, 2), high_watermark=3))
    assert (bench.raft.end_offset, bench.committed) == (2, 2)
    asked_again_later(bench, 2, 2, 2)


def test_what_is_sound_is_appended() -> None:
    bench = Bench(epochs=[1]).follow(2, epoch=2)
    bench.sent(FetchRequest)
    bench.answer(2, fetch_response(2, 2, batch(1, 2) + batch(2, 2)[:-1] + b"\xff"))
    assert bench.raft.end_offset == 2


def test_a_silent_leader_is_doubted() -> None:
    bench = Bench(epochs=[1]).follow(2, epoch=2)
    bench.wait(1_999)
    assert bench.role == "Follower"
    bench.wait(1)
    assert bench.role == "Prospective"


def test_each_answer_buys_the_leader_time() -> None:
    bench = Bench(epochs=[1]).follow(2, epoch=2)
    for _ in range(5):
        bench.sent(FetchRequest)
        bench.wait(1_500)
        bench.answer(2, fetch_response(2, 2))
    assert bench.role == "Follower"


def fetching() -> Bench:
    """A follower whose leader has answered once, with another fetch under way."""
    bench = Bench(epochs=[1], draw=lambda bound: bound - 1).follow(2, epoch=2)
    bench.sent(FetchRequest)
    bench.answer(2, fetch_response(2, 2))
    assert [node_id for node_id, _ in bench.sent(FetchRequest)] == [2]
    return bench


def test_a_closed_connection_counts_at_once() -> None:
    bench = fetching()
    bench.step(Failure(bench.open[2], 2))
    bench.wait(199)
    assert bench.role == "Prospective"


def test_silence_is_no_proof() -> None:
    bench = fetching()
    bench.step(Failure(bench.open[2], 2, ErrorCode.REQUEST_TIMED_OUT))
    bench.wait(1_900)
    assert bench.role == "Follower"


def test_who_is_cut_off_alone_does_not_ask_without_end() -> None:
    bench = Bench(epochs=[1]).follow(2, epoch=2)
    bench.sent(FetchRequest)
    bench.step(Failure(bench.open[2], 2))
    bench.wait(1_900)
    assert bench.role == "Follower", "this leader has never answered us"


def test_who_cannot_reach_its_leader_asks_others() -> None:
    bench = Bench(epochs=[1]).follow(2, epoch=2)
    bench.sent(FetchRequest)
    bench.step(Failure(bench.open[2], 2))
    ((node_id, _),) = bench.sent(FetchRequest)
    assert node_id == 3
    bench.answer(3, fetch_response(3, 7, code=ErrorCode.FENCED_LEADER_EPOCH))
    assert bench.state == ElectionState(7, 3)


def test_who_has_no_news_is_not_asked_again_at_once() -> None:
    bench = Bench(epochs=[1]).follow(2, epoch=2)
    bench.sent(FetchRequest)
    bench.step(Failure(bench.open[2], 2))
    bench.sent(FetchRequest)
    bench.answer(3, fetch_response(2, 2, code=ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert not bench.sent(FetchRequest)
    bench.wait(20)
    assert len(bench.sent(FetchRequest)) == 1


def test_voters_of_the_log_are_asked_besides_those_of_the_settings() -> None:
    bench = Bench(2, 3, own_id=9)
    assert [node.id for node in bench.raft.replica.acquaintances()] == [2, 3]


def test_an_observer_that_cannot_vote_never_doubts() -> None:
    bench = Bench(2, 3, own_id=1, epochs=[1]).follow(2, epoch=2)
    bench.wait(30_000)
    assert bench.role == "Follower"


STRANGER = 7


@pytest.mark.parametrize("static", [False, True])
def test_the_only_voter_hears_of_no_leader(static: bool) -> None:
    """It is a majority by itself, so nobody else can have been elected."""
    bench = Bench(1, epochs=[1], static=static).lead()
    state = bench.state
    part = bench.ask(begin_request(STRANGER, 5)).topics[0].partitions[0]
    assert (part.error_code, part.leader_id, part.leader_epoch) == (ErrorCode.INVALID_REQUEST, 1, state.epoch)
    kind = EndQuorumEpochRequest.TopicData
    ended = kind(topic_name=TOPIC, partitions=[kind.PartitionData(leader_id=STRANGER, leader_epoch=5)])
    assert bench.ask(EndQuorumEpochRequest(topics=[ended])).topics[0].partitions[0].error_code
    part = bench.ask(begin_request(1, 5)).topics[0].partitions[0]
    assert (part.error_code, part.leader_epoch) == (ErrorCode.INVALID_REQUEST, state.epoch)
    for pre_vote in (False, True):
        part = bench.ask(vote_request(STRANGER, 5, 4, 10**9, pre_vote=pre_vote)).topics[0].partitions[0]
        assert (part.error_code, part.vote_granted) == (ErrorCode.INVALID_REQUEST, False)
    assert (bench.role, bench.state) == ("Leader", state)


@pytest.mark.parametrize("static", [False, True])
def test_who_has_a_leader_hears_of_none_that_is_no_voter(static: bool) -> None:
    bench = Bench(epochs=[1], static=static).follow(3, epoch=2)
    bench.sent(FetchRequest)
    bench.answer(3, fetch_response(3, 2))
    part = bench.ask(begin_request(STRANGER, 5)).topics[0].partitions[0]
    assert (part.error_code, part.leader_id, part.leader_epoch) == (ErrorCode.INVALID_REQUEST, 3, 2)
    part = bench.ask(vote_request(STRANGER, 5, 4, 10**9)).topics[0].partitions[0]
    assert (part.error_code, part.vote_granted) == (ErrorCode.INVALID_REQUEST, False)
    assert bench.state == ElectionState(2, 3)
    # Its own leader may tell it of one: the voters may have changed meanwhile.
    bench.sent(FetchRequest)
    bench.answer(3, fetch_response(STRANGER, 5, code=ErrorCode.FENCED_LEADER_EPOCH))
    assert bench.state == ElectionState(5, STRANGER)


def test_a_leader_with_a_majority_hears_of_none_that_is_no_voter() -> None:
    bench = Bench(epochs=[1]).establish()
    state = bench.state
    assert bench.ask(begin_request(STRANGER, 9)).topics[0].partitions[0].error_code
    assert bench.ask(vote_request(STRANGER, 9, 8, 10**9)).topics[0].partitions[0].error_code
    assert (bench.role, bench.state) == ("Leader", state)


def test_who_has_no_leader_hears_of_one_that_its_log_does_not_name_yet() -> None:
    """Voters may have been added while this replica was away (KIP-853); those of the settings are all there are."""
    bench = Bench(epochs=[1])
    part = bench.ask(begin_request(STRANGER, 5)).topics[0].partitions[0]
    assert (part.error_code, part.leader_id) == (ErrorCode.NONE, STRANGER)
    bench = Bench(epochs=[1], static=True)
    part = bench.ask(begin_request(STRANGER, 5)).topics[0].partitions[0]
    assert (part.error_code, part.leader_id) == (ErrorCode.INVALID_REQUEST, -1)
