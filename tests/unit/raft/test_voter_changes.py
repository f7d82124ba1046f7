"""Voters come and go: one at a time, and only when it is safe."""

from dataclasses import replace

import pytest

from ottla.raft.event import Failure, Start, Upgrade
from ottla.raft.voters import Voter
from ottla.wire.control import ControlType
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.end_quorum_epoch import EndQuorumEpochRequest
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from ottla.wire.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from tests.unit.raft.bench import CLUSTER, Bench, address, directory, fetch_response, voters


def add_request(
    id: int = 4, *, early: bool = False, cluster_id: str = CLUSTER, **change: object
) -> AddRaftVoterRequest:
    request = AddRaftVoterRequest(
        cluster_id=cluster_id,
        voter_id=id,
        voter_directory_id=directory(id),
        listeners=[AddRaftVoterRequest.Listener(name="CONTROLLER", host=f"node-{id}", port=9000 + id)],
        ack_when_committed=not early,
    )
    for name, value in change.items():
        setattr(request, name, value)
    return request


def remove_request(id: int) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(cluster_id=CLUSTER, voter_id=id, voter_directory_id=directory(id))


def update_request(
    id: int, epoch: int, *, port: int = 1, versions: tuple[int, int] = (0, 1)
) -> UpdateRaftVoterRequest:
    return UpdateRaftVoterRequest(
        cluster_id=CLUSTER,
        current_leader_epoch=epoch,
        voter_id=id,
        voter_directory_id=directory(id),
        listeners=[UpdateRaftVoterRequest.Listener(name="CONTROLLER", host="moved", port=port)],
        kraft_version_feature=UpdateRaftVoterRequest.KRaftVersionFeature(
            min_supported_version=versions[0], max_supported_version=versions[1]
        ),
    )


def versions(high: int = 1) -> ApiVersionsResponse:
    feature = ApiVersionsResponse.SupportedFeatureKey(name="kraft.version", min_version=0, max_version=high)
    return ApiVersionsResponse(supported_features=[feature])


def replies(bench: Bench) -> list[tuple[ErrorCode, str | None]]:
    found = [
        word.message
        for word in bench.said
        if isinstance(word.message, AddRaftVoterResponse | RemoveRaftVoterResponse)
    ]
    bench.said = [word for word in bench.said if word.message not in found]
    return [(ErrorCode(each.error_code), each.error_message) for each in found]


def settled(*ids: int) -> Bench:
    """A leader whose voters are committed, with node 4 caught up."""
    bench = Bench(*(ids or (1, 2, 3))).establish()
    bench.fetch_by(4, bench.raft.end_offset)
    bench.said.clear()
    return bench


def test_a_voter_is_added() -> None:
    bench = settled()
    assert bench.ask(add_request()) is None
    assert [node_id for node_id, _ in bench.sent(ApiVersionsRequest)] == [4]
    assert bench.raft.voters == voters(1, 2, 3)
    bench.answer(4, versions())
    assert bench.raft.voters == voters(1, 2, 3, 4), "it counts from now on"
    assert not replies(bench)
    bench.fetch_by(2, bench.raft.end_offset)
    assert not replies(bench), "two of four are no majority"
    bench.fetch_by(4, bench.raft.end_offset)
    assert replies(bench) == [(ErrorCode.NONE, None)]


def test_who_asks_for_it_is_answered_before_the_commit() -> None:
    bench = settled()
    bench.ask(add_request(early=True))
    bench.sent(ApiVersionsRequest)
    bench.answer(4, versions())
    assert replies(bench) == [(ErrorCode.NONE, None)]
    assert bench.ask(remove_request(2)).error_code == ErrorCode.REQUEST_TIMED_OUT, "it is still under way"


def test_a_voter_is_removed() -> None:
    bench = settled()
    assert bench.ask(remove_request(3)) is None
    assert bench.raft.voters == voters(1, 2)
    bench.fetch_by(3, bench.raft.end_offset)
    assert not replies(bench), "its copy counts no more"
    bench.fetch_by(2, bench.raft.end_offset)
    assert replies(bench) == [(ErrorCode.NONE, None)]


def test_a_removed_leader_leads_until_that_is_committed() -> None:
    bench = settled()
    assert bench.ask(remove_request(1)) is None
    assert (bench.role, bench.raft.voters) == ("Leader", voters(2, 3))
    bench.fetch_by(2, bench.raft.end_offset)
    assert bench.role == "Leader", "its own copy does not count: one of two"
    bench.fetch_by(3, bench.raft.end_offset)
    assert bench.role == "Resigned"
    assert replies(bench) == [(ErrorCode.NONE, None)]
    assert {node_id for node_id, _ in bench.sent(EndQuorumEpochRequest)} == {2, 3}
    bench.wait(60_000)
    assert bench.role == "Unattached", "it stands for election no more"


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (add_request(2), ErrorCode.DUPLICATE_VOTER),
        (add_request(4, voter_id=-1), ErrorCode.INVALID_REQUEST),
        (add_request(4, voter_directory_id=bytes(16)), ErrorCode.INVALID_REQUEST),
        (add_request(4, listeners=[]), ErrorCode.INVALID_REQUEST),
        (add_request(4, cluster_id="another"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (remove_request(7), ErrorCode.VOTER_NOT_FOUND),
    ],
)
def test_changes_that_are_refused(request_: AddRaftVoterRequest, code: ErrorCode) -> None:
    assert settled().ask(request_).error_code == code


def test_the_last_voter_stays() -> None:
    assert Bench(1).ask(remove_request(1)).error_code == ErrorCode.VOTER_NOT_FOUND


def test_only_the_leader_changes_voters() -> None:
    assert Bench().ask(add_request()).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert Bench().ask(remove_request(2)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_no_change_before_a_commit_of_the_own_epoch() -> None:
    bench = Bench().lead()
    assert bench.ask(remove_request(3)).error_code == ErrorCode.REQUEST_TIMED_OUT
    bench.fetch_by(2, bench.raft.end_offset)
    assert bench.ask(remove_request(3)) is None


def test_no_change_while_another_is_under_way() -> None:
    bench = settled(1, 2, 3, 5)
    bench.fetch_by(3, bench.raft.end_offset)
    assert bench.ask(remove_request(5)) is None
    assert bench.ask(remove_request(3)).error_code == ErrorCode.REQUEST_TIMED_OUT
    bench.wait(2_000)
    assert replies(bench) == [(ErrorCode.REQUEST_TIMED_OUT, "The change was not committed in time.")]
    refused = bench.ask(remove_request(3))
    assert refused.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "not committed yet" in refused.error_message, (
        "nobody waits for it any more, but its record is there"
    )


def test_a_static_quorum_does_not_change() -> None:
    bench = Bench(static=True).establish()
    assert bench.ask(add_request()).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_new_voter_has_to_be_near_and_able() -> None:
    bench = Bench().establish()
    assert bench.ask(add_request()) is None
    bench.sent(ApiVersionsRequest)
    bench.answer(4, versions())
    assert replies(bench)[0][0] == ErrorCode.REQUEST_TIMED_OUT, "it has never fetched"
    bench.fetch_by(4, bench.raft.end_offset)
    assert bench.ask(add_request()) is None
    bench.sent(ApiVersionsRequest)
    bench.answer(4, versions(high=0))
    assert replies(bench)[0][0] == ErrorCode.INVALID_REQUEST, "it does not speak the protocol"
    assert bench.ask(add_request()) is None
    bench.sent(ApiVersionsRequest)
    bench.step(Failure(bench.open[4], 4))
    assert replies(bench)[0][0] == ErrorCode.REQUEST_TIMED_OUT, "it cannot be reached"
    assert bench.raft.voters == voters(1, 2, 3)


def test_who_waits_is_told_when_the_leader_falls() -> None:
    bench = settled()
    bench.ask(remove_request(3))
    bench.wait(3_100)
    assert bench.role == "Resigned"
    assert (ErrorCode.REQUEST_TIMED_OUT, "The change was not committed in time.") in replies(bench)
    bench = settled()
    bench.ask(remove_request(3))
    bench.leader_role.resigns = True
    bench.wait(1_100)
    assert replies(bench) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, None)]


def test_a_voter_that_moved_tells_the_leader() -> None:
    bench = settled()
    response = bench.ask(update_request(2, 1, port=77))
    assert response.error_code == 0
    assert bench.raft.voters.addresses_of(2)[0].port == 77
    assert (response.current_leader.leader_id, response.current_leader.host) == (1, "node-1")
    assert bench.ask(update_request(3, 1)).error_code == ErrorCode.REQUEST_TIMED_OUT, (
        "the last one is not committed"
    )
    bench.fetch_by(2, bench.raft.end_offset)
    assert bench.ask(update_request(3, 1)).error_code == 0


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (update_request(7, 1), ErrorCode.VOTER_NOT_FOUND),
        (update_request(2, 0), ErrorCode.FENCED_LEADER_EPOCH),
        (update_request(2, 9), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (update_request(2, 1, versions=(0, 0)), ErrorCode.INVALID_REQUEST),
        (update_request(2, 1, versions=(1, 0)), ErrorCode.INVALID_REQUEST),
        (UpdateRaftVoterRequest(cluster_id="another"), ErrorCode.INCONSISTENT_CLUSTER_ID),
    ],
)
def test_updates_that_are_refused(request_: UpdateRaftVoterRequest, code: ErrorCode) -> None:
    assert settled().ask(request_).error_code == code


def test_a_follower_sees_to_it_that_it_is_written_down_as_it_is() -> None:
    bench = Bench(epochs=[1], start=False)
    bench.settings = replace(bench.settings, addresses=(address(8),))
    bench.begin()
    bench.step(Start())
    bench.follow(2, epoch=2)
    bench.sent(FetchRequest)
    bench.wait(1_900)
    bench.answer(2, fetch_response(2, 2))
    bench.sent(FetchRequest)
    bench.wait(500)
    assert not bench.sent(UpdateRaftVoterRequest), "the fetch is under way"
    bench.sent(FetchRequest)
    bench.open = {2: bench.raft.replica.outbox._asked}
    bench.answer(2, fetch_response(2, 2))
    ((node_id, asked),) = bench.sent(UpdateRaftVoterRequest)
    assert (node_id, asked.listeners[0].port) == (2, 9008)
    current = UpdateRaftVoterResponse.CurrentLeader(leader_id=2, leader_epoch=2, host="node-2", port=9002)
    bench.answer(2, UpdateRaftVoterResponse(current_leader=current))
    assert len(bench.sent(FetchRequest)) == 1, "it goes on fetching"


def test_an_observer_that_may_asks_to_become_a_voter() -> None:
    bench = Bench(2, 3, own_id=1, epochs=[1], auto_join=True).follow(2, epoch=2)
    bench.sent(FetchRequest)
    bench.wait(2_000)
    bench.open = {2: bench.raft.replica.outbox._asked}
    bench.answer(2, fetch_response(2, 2))
    ((node_id, asked),) = bench.sent(AddRaftVoterRequest)
    assert (node_id, asked.voter_id, asked.ack_when_committed) == (2, 1, False)
    bench.answer(2, AddRaftVoterResponse(error_code=ErrorCode.REQUEST_TIMED_OUT))
    assert len(bench.sent(FetchRequest)) == 1
    assert not bench.sent(AddRaftVoterRequest), "it is asked again later"


def test_who_lost_its_disk_has_its_old_copy_removed_first() -> None:
    bench = Bench(1, 2, 3, epochs=[1], start=False, auto_join=True)
    bench.settings = replace(bench.settings, directory_id=directory(9))
    bench.begin()
    bench.step(Start())
    bench.follow(2, epoch=2)
    bench.sent(FetchRequest)
    bench.wait(2_000)
    assert bench.role == "Follower", "it is no voter, so it does not stand for election"
    bench.open = {2: bench.raft.replica.outbox._asked}
    bench.answer(2, fetch_response(2, 2))
    ((_, asked),) = bench.sent(RemoveRaftVoterRequest)
    assert (asked.voter_id, asked.voter_directory_id) == (1, directory(1))


def test_kraft_version_is_raised_once_all_voters_are_known() -> None:
    bench = Bench(static=True).establish()
    with pytest.raises(BrokerError, match="which directory"):
        bench.step(Upgrade(1))
    assert bench.ask(update_request(2, 1)).error_code == 0
    with pytest.raises(BrokerError, match="3 did not"):
        bench.step(Upgrade(1))
    assert bench.ask(update_request(3, 1)).error_code == 0
    bench.step(Upgrade(1, validate_only=True))
    assert bench.controls() == [ControlType.LEADER_CHANGE]
    bench.step(Upgrade(1))
    assert bench.controls()[1:] == [ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS]
    known = bench.raft.voters.by_id
    assert known[1] == Voter(1, directory(1), (address(1),))
    assert {each.directory_id for each in known.values()} == {directory(1), directory(2), directory(3)}
    bench.step(Upgrade(1))
    assert len(bench.controls()) == 3, "once is enough"
    assert bench.ask(update_request(3, 1)).error_code == ErrorCode.REQUEST_TIMED_OUT
    with pytest.raises(BrokerError, match="cannot be lowered"):
        bench.step(Upgrade(0))


def test_kraft_version_is_not_raised_over_the_heads_of_voters() -> None:
    bench = Bench(static=True).establish()
    assert bench.ask(update_request(2, 1, versions=(0, 0))).error_code == 0
    with pytest.raises(BrokerError, match="Not all voters are known to speak"):
        bench.step(Upgrade(1))
    with pytest.raises(BrokerError):
        Bench(static=True).step(Upgrade(1))
