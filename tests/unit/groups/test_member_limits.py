"""What members of the newer protocols may say of themselves, and that it is counted."""

import pytest

from ottla.groups import member_limits
from ottla.groups.member_limits import NAMES_MAX
from ottla.groups.streams.request import check_topology
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from ottla.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from tests.unit.groups import share_stage, test_streams_stage
from tests.unit.groups.consumer_stage import CLIENT, Stage
from tests.unit.groups.test_consumer_migration import Elder

TOO_MANY = [f"n{number}" for number in range(NAMES_MAX + 1)]


def held(machine):
    return {group.id: group.held_bytes for group in machine.shelf.groups.values()}


def test_a_consumer_names_so_many_topics():
    stage = Stage()
    stage.refused(ErrorCode.INVALID_REQUEST, member_id="m", subscribed_topic_names=TOO_MANY)
    stage.refused(ErrorCode.INVALID_REQUEST, member_id="m", subscribed_topic_names=["n" * (1 << 20), "n"])
    assert not stage.machine.shelf.groups
    assert not stage.beat(member_id="m", subscribed_topic_names=TOO_MANY[1:]).error_code
    assert 200 * NAMES_MAX < stage.group.held_bytes < 300 * NAMES_MAX


def test_what_a_consumer_holds_is_counted_as_long_as_it_is_there():
    stage = Stage()
    stage.beat(member_id="a", subscribed_topic_names=["foo"])
    one = stage.group.held_bytes
    epoch = stage.beat(member_id="b", subscribed_topic_names=["foo", "bar" * 80]).member_epoch
    assert stage.group.held_bytes > 2 * one + 200
    stage.beat(member_id="b", member_epoch=epoch, subscribed_topic_names=["foo"])
    assert stage.group.held_bytes == 2 * one
    assert held(stage.fresh()) == held(stage.machine)
    stage.beat(member_id="b", member_epoch=-1)
    stage.beat(member_id="a", member_epoch=-1)
    assert stage.group.held_bytes == 0


def test_without_room_members_of_all_kinds_are_told_to_come_again(monkeypatch):
    stage = Stage()
    stage.machine.shelf.tally.members.bytes_max = 100_000
    names = TOO_MANY[:300]
    assert not stage.beat(member_id="a", subscribed_topic_names=names).error_code
    stage.refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id="b", subscribed_topic_names=names)
    assert list(stage.group.members) == ["a"]
    assert not stage.beat(member_id="c", subscribed_topic_names=["foo"]).error_code, "little is let in"
    stage.beat(member_id="a", member_epoch=-1)
    stage.now += 1_000
    assert not stage.beat(member_id="b", subscribed_topic_names=names).error_code
    stage.refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id="d", subscribed_topic_names=names)
    request = ShareGroupHeartbeatRequest(
        group_id="s", member_id="m", member_epoch=0, subscribed_topic_names=names
    )
    with pytest.raises(BrokerError) as refused:
        stage.machine.share.heartbeat(request, CLIENT, stage.now)
    assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_classic_member_of_a_consumer_group_is_counted_too():
    stage = Stage()
    stage.beat(member_id="new")
    before = stage.group.held_bytes
    elder = Elder(stage, topics=tuple(TOO_MANY[:1000]))
    elder.join()
    assert stage.group.held_bytes > before + 200_000


def test_a_member_of_a_share_group_names_so_many_topics():
    stage = share_stage.Stage()
    with pytest.raises(BrokerError) as refused:
        stage.beat("m", topics=TOO_MANY)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    stage.beat("m", topics=TOO_MANY[1:])
    assert stage.group.held_bytes > 200 * NAMES_MAX
    stage.beat("m", epoch=-1)
    assert stage.group.held_bytes == 0


def test_a_topology_names_so_many_topics():
    def request(count):
        part = test_streams_stage.subtopology("0", sources=TOO_MANY[:count])
        return StreamsGroupHeartbeatRequest(group_id="g", topology=test_streams_stage.topology(part))

    assert len(check_topology(request(NAMES_MAX - 1))) == NAMES_MAX
    with pytest.raises(BrokerError) as refused:
        check_topology(request(NAMES_MAX))
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert member_limits.names_bytes(["a"]) > 200
