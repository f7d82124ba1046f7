"""Short requests with long answers: they are served in many turns, and answered with the bytes of the whole."""

import pytest

from ottla.broker import describing, long_answers, long_requests
from ottla.broker.apis import (
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    describe_groups,
    join_group,
    offset_commit,
    offset_fetch,
    share_group_describe,
    share_group_heartbeat,
)
from ottla.broker.dispatch import Dispatcher
from ottla.broker.session import Session
from ottla.channel.connections import TURN_COST_MAX
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.join_group import JoinGroupRequest
from ottla.wire.messages.offset_commit import OffsetCommitRequest
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from ottla.wire.messages.share_group_describe import ShareGroupDescribeRequest
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from ottla.wire.piecewise import encode_piecewise, is_long
from tests.peers.connection import request_frame
from tests.unit.broker.test_coordinators import made
from tests.unit.broker.test_slicing import Peer

A_TURN = 7


@pytest.fixture
def station(make_station):
    """One coordinator knows all groups, so they are described in the order in which they are named."""
    station = make_station(**{"offsets.topic.num.partitions": "1"})
    station.connection.session = Session("PLAINTEXT")
    return station


@pytest.fixture
def served(station, monkeypatch):
    """Ask through a dispatcher: what a request is answered with whole, and with a few elements a turn."""
    made(station)
    station.create("t", partitions=3)

    def ask(api, request, version):
        frame = bytearray(request_frame(request, version, 9))
        answers = []
        for most in (1 << 30, A_TURN):
            monkeypatch.setattr(long_answers, "ANSWERED_A_TURN", most)
            monkeypatch.setattr(describing, "ANSWERED_A_TURN", most)
            monkeypatch.setattr(long_requests, "PIECE", most)
            monkeypatch.setattr(offset_fetch._in_slices, "size", min(most, 500))
            dispatcher = Dispatcher((api,), station.broker, station.reports.append)
            peer = Peer(station)
            dispatcher.serve(peer, frame, 4, len(frame))
            assert bool(peer.muted) is (most == A_TURN), "it is served in steps if there is much to tell"
            station.settle()
            assert not peer.muted and not len(dispatcher.long) and not station.reports
            (reply,) = peer.replies
            answers.append(reply)
        whole, in_parts = answers
        assert whole == in_parts
        return in_parts

    return ask


def machine_of(station, group_id):
    coordination = station.broker.coordination
    return coordination.groups.machine(coordination.index(group_id))


def put_offsets(station, group_id, count):
    topics = OffsetCommitRequest.OffsetCommitRequestTopic
    part = topics.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=5, committed_metadata="m"
    )
    request = OffsetCommitRequest(group_id=group_id, topics=[topics(name="t", partitions=[part])])
    assert station.ask(offset_commit.API, request, 8).topics[0].partitions[0].error_code == 0
    ledger = machine_of(station, group_id).offsets._ledger
    place = next(ledger.places(group_id))
    for number in range(1, count):
        ledger.put(place._replace(partition=number), ledger.find(place))


@pytest.mark.parametrize("version", [7, 8, 10])
def test_offsets_of_groups_with_many(station, served, version):
    kind = OffsetFetchRequest.OffsetFetchRequestGroup
    groups = {"a": 25, "b": 1, "c": 40, "d": 3}
    for group_id, count in groups.items():
        put_offsets(station, group_id, count)
    if version < 8:
        request = OffsetFetchRequest(group_id="c", topics=None)
    else:
        asked = [kind(group_id=each, topics=None) for each in (*groups, "nobody", "a", "a")]
        topic = kind.OffsetFetchRequestTopics(
            name="t",
            topic_id=station.broker.image.topics.by_name["t"].id if version >= 10 else bytes(16),
            partition_indexes=list(range(30)),
        )
        asked.append(kind(group_id="c", topics=[topic]))
        request = OffsetFetchRequest(groups=asked)
    reply = served(offset_fetch.API, request, version)
    answer = OffsetFetchResponse.decode(reply[8 if version < 6 else 9 :], version)
    if version < 8:
        assert [len(topic.partitions) for topic in answer.topics] == [40]
    else:
        counts = {}
        for group in answer.groups:
            counts.setdefault(group.group_id, []).append(sum(len(topic.partitions) for topic in group.topics))
        assert counts == {"a": [25, 25], "b": [1], "c": [40, 30], "d": [3], "nobody": [0]}


def test_consumer_groups_with_many_members(station, served):
    for group_id, count in (("a", 2), ("b", 30), ("c", 1), ("d", 9)):
        for number in range(count):
            request = ConsumerGroupHeartbeatRequest(
                group_id=group_id,
                member_id=f"{group_id}{number}",
                member_epoch=0,
                rebalance_timeout_ms=5_000,
                subscribed_topic_names=["t", *(f"n{each}" for each in range(40 * number))],
                topic_partitions=[],
            )
            assert station.ask(consumer_group_heartbeat.API, request).error_code == 0
    request = ConsumerGroupDescribeRequest(
        group_ids=["a", "b", "nobody", "c", "d", "b", "b"], include_authorized_operations=True
    )
    version = consumer_group_describe.API.versions[-1]
    reply = served(consumer_group_describe.API, request, version)
    answer = ConsumerGroupDescribeResponse.decode(reply[9:], version)
    found = [(group.group_id, len(group.members)) for group in answer.groups]
    assert found == [("a", 2), ("b", 30), ("nobody", 0), ("c", 1), ("d", 9), ("b", 30)], "twice at most"
    pieces = [len(each) for each in encode_piecewise(answer, version, A_TURN)]
    assert is_long(answer, version, A_TURN) and len(pieces) > 30


def test_share_groups_with_many_members(station, served):
    for number in range(30):
        request = ShareGroupHeartbeatRequest(
            group_id="s", member_id=f"m{99 - number}", member_epoch=0, subscribed_topic_names=["t"]
        )
        assert station.ask(share_group_heartbeat.API, request).error_code == 0
    request = ShareGroupDescribeRequest(group_ids=["s", "nobody"])
    served(share_group_describe.API, request, share_group_describe.API.versions[-1])


def test_classic_groups_with_many_members(station, served):
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=bytes(100))
    for number in range(30):
        request = JoinGroupRequest(
            group_id="c",
            session_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[protocol],
            group_instance_id=f"i{number}",
        )
        api = join_group.API
        api.handle(request, 9, station.connection, station.broker)
    request = DescribeGroupsRequest(groups=["c", "nobody"], include_authorized_operations=True)
    served(describe_groups.API, request, 6)


def test_a_long_heartbeat_takes_turns_and_costs_what_it_names(station):
    made(station)
    api = consumer_group_heartbeat.API

    def beat(count):
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=5_000,
            subscribed_topic_names=[f"n{number:09}" for number in range(count)],
            topic_partitions=[],
        )
        frame = bytearray(request_frame(request, 1, 9))
        dispatcher = Dispatcher((api,), station.broker, station.reports.append)
        peer = Peer(station)
        before = station.connections.turn_cost
        dispatcher.serve(peer, frame, 4, len(frame))
        is_muted, cost = bool(peer.muted), station.connections.turn_cost - before
        station.settle()
        assert len(peer.replies) == 1 and not peer.muted
        return is_muted, cost >= TURN_COST_MAX

    assert beat(10) == (False, False)
    assert beat(1_000) == (False, True)
    assert beat(10_000) == (True, False)


def test_a_group_with_many_offsets_is_deleted_in_turns(station):
    made(station)
    station.create("t")
    put_offsets(station, "g", 12_000)
    machine = machine_of(station, "g")
    partition = station.broker.table.by_name("__consumer_offsets", station.broker.coordination.index("g"))
    before = partition.log.end_offset
    answer = station.ask(delete_groups.API, DeleteGroupsRequest(groups_names=["g", "nobody"]))
    assert [(each.group_id, each.error_code) for each in answer.results] == [
        ("g", 0),
        ("nobody", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    assert "g" not in machine.shelf.groups
    assert partition.log.end_offset - before == 12_001
