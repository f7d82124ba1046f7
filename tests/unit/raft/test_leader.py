"""The leader: what it commits, whom it serves, when it gives up."""

from dataclasses import replace

import pytest

from ottla.raft.event import Append, Gone, Request, Start
from ottla.raft.parking import WAIT_MS_MAX, Parked, ParkedFetches
from ottla.raft.ready import Reply
from ottla.raft.voters import Address
from ottla.wire.control import ControlType
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from ottla.wire.messages.end_quorum_epoch import EndQuorumEpochRequest
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from tests.unit.raft.bench import Bench, batch, directory, fetch_request, told, vote_request


def answers(bench: Bench) -> list[FetchResponse]:
    found = [word.message for word in bench.said if isinstance(word.message, FetchResponse)]
    bench.said = [word for word in bench.said if word.message not in found]
    return found


def test_an_epoch_opens_with_a_record_of_its_leader() -> None:
    bench = Bench(epochs=[1, 1]).lead()
    assert bench.controls() == [
        ControlType.LEADER_CHANGE,
        ControlType.KRAFT_VERSION,
        ControlType.KRAFT_VOTERS,
    ]
    assert bench.leader_role.epoch_start_offset == 2


def test_voters_are_written_down_once() -> None:
    bench = Bench(epochs=[1]).establish()
    bench.begin()  # as after a crash
    bench.step(Start())
    bench.wait(1_000)
    bench.lead()
    assert bench.controls().count(ControlType.KRAFT_VOTERS) == 1
    assert bench.controls().count(ControlType.LEADER_CHANGE) == 2


def test_a_leader_that_moved_says_so() -> None:
    moved = Address("CONTROLLER", "elsewhere", 1)
    bench = Bench(start=False)
    bench.settings = replace(bench.settings, addresses=(moved,))
    bench.begin()
    bench.step(Start())
    bench.lead()
    assert bench.raft.voters.addresses_of(1) == (moved,)


def test_a_static_quorum_writes_no_voters() -> None:
    bench = Bench(static=True).lead()
    assert bench.controls() == [ControlType.LEADER_CHANGE]


def test_a_record_is_committed_when_a_majority_has_it() -> None:
    bench = Bench(1, 2, 3, 4, 5).lead()
    end = bench.raft.end_offset
    bench.fetch_by(2, end)
    assert bench.committed == -1, "two of five"
    bench.fetch_by(3, end)
    assert bench.committed == end
    offset = bench.append()
    bench.fetch_by(2, offset + 1)
    bench.fetch_by(2, offset + 1)
    assert bench.committed == end, "the same one twice"
    bench.fetch_by(4, offset + 1)
    assert bench.committed == offset + 1


def test_what_is_older_is_committed_with_something_newer() -> None:
    bench = Bench(epochs=[1, 1, 1]).lead()
    bench.fetch_by(2, 3, last_epoch=1)
    bench.fetch_by(3, 3, last_epoch=1)
    assert bench.committed == -1, "all have the three records of epoch 1, and that is not enough (R5)"
    bench.fetch_by(2, 4)
    assert bench.committed == 4


def test_a_leader_counts_its_own_copy_once_it_is_synced() -> None:
    bench = Bench().establish()
    bench.syncs = False
    offset = bench.append()
    bench.fetch_by(2, offset + 1)
    assert bench.committed == offset, "one of three has it on disk"
    bench.sync()
    assert bench.committed == offset + 1


def test_two_others_are_enough() -> None:
    bench = Bench().establish()
    bench.syncs = False
    offset = bench.append()
    bench.fetch_by(2, offset + 1)
    bench.fetch_by(3, offset + 1)
    assert bench.committed == offset + 1, "a majority need not include the leader"


def test_observers_do_not_count() -> None:
    bench = Bench().lead()
    bench.fetch_by(7, bench.raft.end_offset)
    bench.fetch_by(2, bench.raft.end_offset, directory_id=directory(9))
    bench.fetch_by(-1, bench.raft.end_offset)
    assert bench.committed == -1
    assert {key.id for key in bench.leader_role.observers} == {2, 7}


def test_the_lead_is_announced_when_it_is_safe_to_decide() -> None:
    bench = Bench().lead()
    assert bench.ready.leadership is None
    bench.fetch_by(2, bench.raft.end_offset)
    assert bench.ready.committed == bench.raft.end_offset
    assert bench.ready.leadership == (1, 1)


def test_a_fetch_waits_for_records() -> None:
    bench = Bench().establish()
    end = bench.raft.end_offset
    assert bench.fetch_by(2, end, wait_ms=500) is None
    bench.append(b"news")
    (response,) = answers(bench)
    assert b"news" in bytes(told(response).records or b"")
    assert told(response).high_watermark == end


def test_a_fetch_waits_for_the_watermark() -> None:
    bench = Bench(1, 2, 3, 4, 5).establish()
    offset = bench.append()
    assert bench.fetch_by(4, offset + 1, wait_ms=500, high_watermark=offset) is None
    bench.fetch_by(2, offset + 1)
    (response,) = answers(bench)
    assert told(response).high_watermark == offset + 1
    behind = bench.fetch_by(4, offset + 1, wait_ms=500, high_watermark=offset)
    assert told(behind).high_watermark == offset + 1, "who knows less is told at once"


def test_a_fetch_waits_no_longer_than_it_may() -> None:
    bench = Bench().establish()
    assert bench.fetch_by(2, bench.raft.end_offset, wait_ms=500) is None
    bench.wait(499)
    assert not answers(bench)
    bench.wait(1)
    assert len(answers(bench)) == 1


def test_who_waits_at_a_fallen_leader_is_sent_away() -> None:
    bench = Bench().establish()
    assert bench.fetch_by(2, bench.raft.end_offset, wait_ms=500) is None
    bench.ask(vote_request(3, 9, 1, 99))
    (response,) = answers(bench)
    assert told(response).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    current = told(response).current_leader
    assert current is not None
    assert (current.leader_id, current.leader_epoch) == (-1, 9)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"epoch": 0, "last_epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"epoch": 9}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"last_epoch": 2}, ErrorCode.INVALID_REQUEST),
        ({"last_epoch": -1}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_fetches_that_are_refused(change: dict[str, int], code: ErrorCode) -> None:
    bench = Bench().establish()
    assert told(bench.fetch_by(2, 1, **change)).error_code == code


def test_a_fetch_of_ourselves_is_refused() -> None:
    bench = Bench().establish()
    assert told(bench.fetch_by(1, 1)).error_code == ErrorCode.INVALID_REQUEST


def test_a_fetch_of_another_cluster_is_refused() -> None:
    bench = Bench().establish()
    request = fetch_request(2, 1, 1, 1, cluster_id="another")
    assert bench.ask(request).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID


def test_answers_tell_where_the_leader_is_to_versions_that_can_say_it() -> None:
    bench = Bench().establish()
    request = fetch_request(2, 1, 1, 1)
    (endpoint,) = bench.ask(request).node_endpoints
    assert (endpoint.node_id, endpoint.host, endpoint.port) == (1, "node-1", 9001)
    assert bench.ask(request, version=16).node_endpoints == []


def test_a_diverging_log_is_told_where() -> None:
    bench = Bench(epochs=[1, 1, 3]).establish()
    diverging = told(bench.fetch_by(2, 5, last_epoch=2)).diverging_epoch
    assert diverging is not None
    assert (diverging.epoch, diverging.end_offset) == (1, 2)
    assert bench.leader_role.voters[2].end_offset != 5, "what does not fit is no receipt"


def test_a_leader_without_a_majority_steps_down() -> None:
    bench = Bench(1, 2, 3, 4, 5).establish()
    for _ in range(4):
        bench.wait(1_000)
        bench.fetch_by(2, bench.raft.end_offset)
        bench.fetch_by(3, bench.raft.end_offset)
    assert bench.role == "Leader"
    bench.wait(2_000)
    bench.fetch_by(2, bench.raft.end_offset)
    bench.wait(1_000)
    assert bench.role == "Resigned", "one other of five is too few"
    assert bench.ready.leadership == (-1, 1)
    assert {node_id for node_id, _ in bench.sent(EndQuorumEpochRequest)} == {2, 3, 4, 5}


def test_the_only_voter_never_steps_down() -> None:
    bench = Bench(1)
    bench.wait(100_000)
    assert bench.role == "Leader"


def test_silent_voters_are_told_who_leads() -> None:
    bench = Bench().lead()
    assert {node_id for node_id, _ in bench.sent(BeginQuorumEpochRequest)} == {2, 3}
    for id in (2, 3):
        kind = BeginQuorumEpochResponse.TopicData
        part = kind.PartitionData(leader_id=1, leader_epoch=1)
        bench.answer(
            id, BeginQuorumEpochResponse(topics=[kind(topic_name="__cluster_metadata", partitions=[part])])
        )
    bench.wait(900)
    bench.fetch_by(2, 0)
    bench.wait(100)
    assert {node_id for node_id, _ in bench.sent(BeginQuorumEpochRequest)} == {3}, "2 fetches by itself"


def test_only_a_leader_appends_and_only_at_its_end() -> None:
    bench = Bench()
    with pytest.raises(BrokerError):
        bench.step(Append(batch(0, 0)))
    bench.lead()
    for wrong in (batch(0, 1), batch(bench.raft.end_offset, 7)):
        with pytest.raises(BrokerError):
            bench.step(Append(wrong))
    end = bench.raft.end_offset
    bench.step(Append(batch(end, 1) + batch(end + 1, 1)))
    assert bench.raft.end_offset == end + 2


def test_a_fetch_is_not_given_more_than_it_asks_for() -> None:
    bench = Bench().establish()
    first = bench.append(b"a" * 100)
    bench.append(b"b" * 100)
    whole = bytes(told(bench.fetch_by(2, first)).records or b"")
    half = bytes(told(bench.fetch_by(2, first, max_bytes=10)).records or b"")
    assert b"b" * 100 in whole
    assert b"a" * 100 in half
    assert b"b" * 100 not in half, "one batch comes at least, and no more than fit"


def test_a_fetch_waits_no_longer_than_it_is_worth_keeping() -> None:
    """Whoever has hung up meanwhile is not noticed: nobody else may have its place for weeks."""
    bench = Bench(1, 2, 3).establish()
    end = bench.raft.end_offset
    assert bench.fetch_by(7, end, wait_ms=2**31 - 1) is None
    assert len(bench.leader_role.parked) == 1
    for _ in range(WAIT_MS_MAX // 500):
        bench.wait(500)
        bench.fetch_by(2, end)
    assert not bench.leader_role.parked
    (answer,) = [each for each in answers(bench) if not told(each).records][-1:]
    assert told(answer).error_code == ErrorCode.NONE


def test_no_more_fetches_wait_than_any_cluster_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.raft.apis.fetch.PARKED_MAX", 100)
    bench = Bench(1, 2, 3).establish()
    end = bench.raft.end_offset
    for number in range(100):
        assert bench.fetch_by(7 + number, end, wait_ms=500) is None
    assert bench.fetch_by(6, end, wait_ms=500) is not None, "it is told at once that there is nothing"
    assert len(bench.leader_role.parked) == 100


def test_who_has_gone_waits_no_longer() -> None:
    bench = Bench(1, 2, 3).establish()
    end = bench.raft.end_offset
    assert bench.fetch_by(7, end, wait_ms=500) is None
    assert bench.fetch_by(8, end, wait_ms=500) is None
    gone, stays = [each.request.token for each in bench.leader_role.parked]
    bench.step(Gone(gone))
    bench.step(Gone(gone))
    at = len(bench.said)
    bench.append()
    assert [each.token for each in bench.said[at:] if isinstance(each, Reply)] == [stays]


def test_the_next_deadline_is_found_without_a_look_at_all_who_wait() -> None:
    parked = ParkedFetches()
    waits = [(number * 7919) % 5000 for number in range(2000)]
    requests = [Request(object(), FetchRequest(), 17, "CONTROLLER") for _ in waits]
    for request, wait in zip(requests, waits, strict=True):
        parked.add(Parked(request, 0, 0, wait))
    assert parked.deadline == min(waits)
    parked.drop(requests[waits.index(0)].token)
    assert parked.deadline == sorted(waits)[1]
    assert [each.deadline for each in parked.take_due(100)] == sorted(each for each in waits if 0 < each <= 100)
    assert parked.deadline == min(each for each in waits if each > 100)
    assert len(parked.take(lambda each: each.deadline > 200)) == sum(each > 200 for each in waits)
    for _ in range(10_000):
        parked.add(Parked(requests[0], 0, 0, 9_000))
        parked.drop(requests[0].token)
    assert len(parked._deadlines) < 3 * len(parked) + 100, "what was answered is not kept for long"
    parked.take_all()
    assert (parked.deadline, len(parked)) == (None, 0)
