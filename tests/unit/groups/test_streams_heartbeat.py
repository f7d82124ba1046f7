"""StreamsGroupHeartbeat: joining, moving tasks from one to another, leaving, and what is refused."""

import pytest

from ottla.groups.group import Kind
from ottla.groups.streams import records
from ottla.groups.streams.statuses import StatusCode
from ottla.replicated.keyed import KeyedRecord, decode
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest as Request
from tests.unit.groups.test_streams_stage import (
    CLIENT,
    GROUP,
    PLAIN,
    Stage,
    durable,
    ids,
    make_machine,
    settle,
    subtopology,
    topology,
)

ALL = {("0", 0), ("0", 1), ("0", 2), ("0", 3), ("1", 0), ("1", 1)}


def test_the_first_member_runs_everything():
    stage = Stage()
    a = stage.thread("a")
    response = a.step()
    assert (response.member_id, response.heartbeat_interval_ms, response.status) == ("a", 5000, [])
    assert a.active == ALL
    assert a.epoch == stage.group.epoch == stage.group.assignment_epoch == 2
    assert stage.group.state == "Stable"
    kinds = [record.key.api_key for record in stage.records]
    assert kinds == [19, 23, 17, 21, 20, 22]


def test_a_heartbeat_without_news_writes_nothing():
    stage = Stage()
    a = stage.thread("a")
    a.step()
    count = len(stage.records)
    response = a.step()
    assert len(stage.records) == count
    assert response.active_tasks is None


def test_a_task_moves_only_when_it_was_given_up():
    stage = Stage()
    a, b = stage.thread("a"), stage.thread("b")
    a.step()
    b.step()
    assert b.active == set()
    assert b.epoch == 3
    assert stage.group.state == "Reconciling"
    a.beat()
    assert (a.epoch, len(a.granted["active"])) == (2, 3)
    b.step()
    assert b.active == set(), "a has yet to give up"
    a.obey()
    a.step()
    assert a.epoch == 3
    b.step()
    assert len(b.active) == 3
    assert a.active | b.active == ALL
    assert stage.group.state == "Stable"


def test_who_does_not_give_up_in_time_is_out():
    stage = Stage()
    a, b = stage.thread("a"), stage.thread("b")
    a.step()
    b.step()
    a.beat()
    stage.pass_time(4_999)
    a.beat()
    assert a.error is ErrorCode.NONE
    stage.pass_time(1)
    a.beat()
    assert a.error is ErrorCode.UNKNOWN_MEMBER_ID
    settle([b])
    assert b.active == ALL


def test_who_is_not_heard_from_is_out():
    stage = Stage()
    a, b = stage.thread("a"), stage.thread("b")
    settle([a, b])
    stage.pass_time(30_000)
    b.step()
    stage.pass_time(15_000)
    assert list(stage.group.members) == ["b"]
    settle([b])
    assert b.active == ALL


def test_leaving_frees_everything():
    stage = Stage()
    a, b = stage.thread("a"), stage.thread("b")
    settle([a, b])
    epoch = stage.group.epoch
    response = stage.beat(member_id="a", member_epoch=-1)
    assert (response.error_code, response.member_epoch, response.status) == (0, -1, [])
    assert stage.group.epoch == epoch + 1
    settle([b])
    assert b.active == ALL
    stage.beat(member_id="b", member_epoch=-1)
    assert stage.group.state == "Empty"


def test_the_first_assignment_waits_for_more_members():
    stage = Stage({"group.streams.initial.rebalance.delay.ms": "3000"})
    a, b = stage.thread("a"), stage.thread("b")
    a.step()
    assert a.statuses == [StatusCode.ASSIGNMENT_DELAYED]
    assert (a.epoch, a.active) == (1, set())
    b.step()
    stage.pass_time(3_000)
    assert stage.group.assignment_epoch == stage.group.epoch
    a.step()
    b.step()
    assert (len(a.active), len(b.active)) == (3, 3)
    assert a.statuses == []


def test_a_group_made_anew_waits_anew():
    stage = Stage({"group.streams.initial.rebalance.delay.ms": "3000"})
    stage.thread("a").step()
    stage.beat(member_epoch=-1)
    stage.ask(stage.machine.listing.delete, [GROUP])
    stage.pass_time(2_000)
    b = stage.thread("b")
    b.step()
    stage.pass_time(2_999)
    b.step()
    assert b.statuses == [StatusCode.ASSIGNMENT_DELAYED]
    stage.pass_time(1)
    b.step()
    assert b.active == ALL


def test_assignments_keep_their_distance():
    stage = Stage({"group.streams.assignment.interval.ms": "1000"})
    a, b = stage.thread("a"), stage.thread("b")
    a.step()
    b.step()
    assert b.statuses == [StatusCode.ASSIGNMENT_DELAYED]
    stage.pass_time(1_000)
    settle([a, b])
    assert len(b.active) == 3


def test_standbys_are_elsewhere():
    stage = Stage({"group.streams.num.standby.replicas": "1"})
    a, b = stage.thread("a"), stage.thread("b")
    settle([a, b])
    assert a.standby | b.standby == {("1", 0), ("1", 1)}
    assert not a.standby & a.active
    assert not b.standby & b.active


def test_a_shutdown_is_told_to_all():
    stage = Stage()
    a, b = stage.thread("a"), stage.thread("b")
    settle([a, b])
    a.step(shutdown_application=True)
    b.step()
    assert b.statuses == [StatusCode.SHUTDOWN_APPLICATION]
    stage.beat(member_id="a", member_epoch=-1)
    stage.beat(member_id="b", member_epoch=-1)
    c = stage.thread("c")
    c.step()
    assert c.statuses == []


def test_endpoints_are_told_when_they_change():
    stage = Stage()
    a = stage.thread("a", user_endpoint=Request.Endpoint(host="here", port=9))
    a.step()
    assert a.endpoint_epoch == 0, "the group was only being made"
    b = stage.thread("b", user_endpoint=Request.Endpoint(host="there", port=8))
    settle([a, b])
    response = a.beat()
    assert response.partitions_by_user_endpoint is None
    a.endpoint_epoch = -7
    found = {
        each.user_endpoint.host: {topic.topic: topic.partitions for topic in each.active_partitions}
        for each in a.beat().partitions_by_user_endpoint
    }
    assert found.keys() == {"here", "there"}
    for topic, partitions in (("foo", [0, 1, 2, 3]), ("bar", [0, 1])):
        assert sorted(number for each in found.values() for number in each.get(topic, [])) == partitions


def test_an_answer_that_was_lost_is_given_again():
    stage = Stage()
    a, b = stage.thread("a"), stage.thread("b")
    a.step()
    b.step()
    a.beat()
    a.obey()
    a.beat()
    a.epoch = 2
    a.beat()
    assert (a.error, a.epoch) == (ErrorCode.NONE, 3)
    a.epoch = 2
    a.runs["active"] = set(ALL)
    a.beat()
    assert a.error is ErrorCode.FENCED_MEMBER_EPOCH


def test_an_epoch_from_the_future_is_fenced():
    stage = Stage()
    stage.thread("a").step()
    stage.refused(ErrorCode.FENCED_MEMBER_EPOCH, member_epoch=9)


def test_a_stale_topology_is_told_and_another_refused():
    stage = Stage()
    stage.thread("a", topology=topology(subtopology("0", ["foo"]), epoch=3)).step()
    b = stage.thread("b", topology=topology(subtopology("0", ["bar"]), epoch=2))
    b.step()
    assert b.statuses == [StatusCode.STALE_TOPOLOGY]
    other = topology(subtopology("0", ["bar"]), epoch=3)
    stage.refused(ErrorCode.INVALID_REQUEST, member_id="c", topology=other)
    same = topology(subtopology("0", ["foo"]), epoch=3)
    assert stage.beat(member_id="d", topology=same).error_code == 0


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_id": " "}, ErrorCode.INVALID_REQUEST),
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rack_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"instance_id": "i"}, ErrorCode.INVALID_REQUEST),
        ({"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST),
        ({"active_tasks": None}, ErrorCode.INVALID_REQUEST),
        ({"standby_tasks": ids({("0", 1)})}, ErrorCode.INVALID_REQUEST),
        ({"warmup_tasks": ids({("0", 1)})}, ErrorCode.INVALID_REQUEST),
        ({"task_offsets": []}, ErrorCode.INVALID_REQUEST),
        ({"task_end_offsets": []}, ErrorCode.INVALID_REQUEST),
        ({"topology": None}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -3}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": 1, "topology": PLAIN}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": 1, "active_tasks": []}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": 1}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"member_epoch": -1}, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_what_makes_no_sense_is_refused(fields, code):
    stage = Stage()
    stage.refused(code, **fields)
    assert stage.records == []


def test_tasks_that_there_are_not_are_refused():
    stage = Stage()
    a = stage.thread("a")
    a.step()
    for task in (("0", 4), ("9", 0)):
        fields = {"active_tasks": ids({task}), "standby_tasks": [], "warmup_tasks": []}
        stage.refused(ErrorCode.INVALID_REQUEST, member_epoch=a.epoch, **fields)


def test_a_full_group_takes_nobody():
    stage = Stage({"group.streams.max.size": "1"})
    stage.thread("a").step()
    stage.refused(ErrorCode.GROUP_MAX_SIZE_REACHED, member_id="b")


def test_commits_go_by_the_epoch_of_the_task():
    stage = Stage()
    a, b = stage.thread("a"), stage.thread("b")
    settle([a, b])
    group = stage.group
    assert group.commit_check("a", None, a.epoch, 9, transactional=False) is None
    kept = next(iter(a.active))
    topic = {"0": "foo", "1": "bar"}[kept[0]]
    check = group.commit_check("a", None, 2, 9, transactional=False)
    check(topic, kept[1])
    moved = next(iter(b.active))
    with pytest.raises(BrokerError) as refused:
        check({"0": "foo", "1": "bar"}[moved[0]], moved[1])
    assert refused.value.code is ErrorCode.STALE_MEMBER_EPOCH
    with pytest.raises(BrokerError):
        group.check_commit("a", None, 2, 9, transactional=False)
    with pytest.raises(BrokerError) as refused:
        group.commit_check("a", None, a.epoch, 8, transactional=False)
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
    group.check_fetch(None, -1)
    with pytest.raises(BrokerError):
        group.check_fetch("a", 1)
    with pytest.raises(BrokerError):
        group.check_delete()
    assert group.subscribes_to("foo")
    assert not group.subscribes_to("store")


def test_what_is_written_is_read_again():
    stage = Stage({"group.streams.num.standby.replicas": "1"})
    tags = [Request.KeyValue(key="zone", value="x")]
    a = stage.thread("a", user_endpoint=Request.Endpoint(host="here", port=9), client_tags=tags, rack_id="r")
    b = stage.thread("b")
    settle([a, b], rounds=3)
    c = stage.thread("c")
    c.step()
    a.beat()
    assert durable(stage.fresh()) == durable(stage.machine)
    read = make_machine(stage.topics, stage.settings)
    for offset, record in enumerate(stage.records):
        again = decode(read.kinds, *record.encode())
        assert isinstance(again, KeyedRecord)
        read.apply(offset, again)
    assert durable(read) == durable(stage.machine)


def test_a_new_leader_gives_time_and_goes_on():
    stage = Stage()
    a, b = stage.thread("a"), stage.thread("b")
    a.step()
    b.step()
    a.beat()
    machine = make_machine(stage.topics, stage.settings)
    stage.replayed(machine)
    stage.machine = machine
    machine.lead(stage.now)
    a.obey()
    settle([a, b])
    assert (len(a.active), len(b.active)) == (3, 3)
    stage.pass_time(45_000)
    assert stage.group.members == {}


def test_a_group_can_be_deleted():
    stage = Stage()
    stage.thread("a").step()
    stage.beat(member_epoch=-1)
    stage.group.check_delete()
    for record in stage.group.tombstones():
        stage.machine.apply(0, record)
    assert GROUP not in stage.machine.shelf.groups


def test_a_group_is_described():
    stage = Stage()
    a = stage.thread("a", client_tags=[Request.KeyValue(key="zone", value="x")])
    settle([a], rounds=2)
    [found] = stage.describe()
    assert (found.group_state, found.group_epoch, found.assignment_epoch) == ("Stable", 2, 2)
    [member] = found.members
    assert member.client_tags[0].value == "x"
    assert member.assignment == member.target_assignment
    assert [(each.subtopology_id, each.partitions) for each in member.assignment.active_tasks] == [
        ("0", [0, 1, 2, 3]),
        ("1", [0, 1]),
    ]
    assert (found.assignor_name, found.topology_description_status) == ("sticky", 0)
    assert stage.describe(described=True)[0].topology_description_status == 1
    stores = found.topology.subtopologies[1].state_changelog_topics
    assert [(topic.name, topic.partitions) for topic in stores] == [("store", 2)]
    assert [each.error_code for each in stage.describe("", "other")] == [
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
    ]


def test_a_topology_that_an_earlier_release_did_not_validate_begins_an_epoch():
    stage = Stage()
    a = stage.thread("a")
    a.step()
    group = stage.group
    stage.machine.apply(0, records.epoch(GROUP, group.epoch, group.metadata_hash, -1, group.configs))
    assert stage.group.state == "NotReady"
    a.step()
    assert (a.epoch, stage.group.epoch, stage.group.state) == (3, 3, "Stable")


def test_a_change_of_settings_begins_an_epoch():
    stage = Stage()
    a = stage.thread("a")
    a.step()
    group = stage.group
    was = {"num.standby.replicas": "2"}
    stage.machine.apply(0, records.epoch(GROUP, group.epoch, group.metadata_hash, 0, was))
    a.step()
    assert (stage.group.epoch, stage.group.configs) == (3, {"num.standby.replicas": "0"})


def test_a_classic_group_that_is_empty_makes_way_and_others_do_not():
    stage = Stage()
    stage.machine.classic.add_simple(GROUP)
    stage.thread("a").step()
    assert stage.group.kind is Kind.STREAMS
    request = ConsumerGroupHeartbeatRequest(
        group_id="other",
        member_id="m",
        rebalance_timeout_ms=5_000,
        topic_partitions=[],
        subscribed_topic_names=["foo"],
    )
    stage.ask(stage.machine.consumer.heartbeat, request, 1, CLIENT)
    stage.refused(ErrorCode.GROUP_ID_NOT_FOUND, group_id="other")


def test_one_whose_answer_to_a_revocation_could_not_be_written_down_is_still_waited_for():
    stage = Stage()
    a, b = stage.thread("a", rebalance_timeout_ms=2_000), stage.thread("b")
    a.step()
    b.step()
    a.beat()
    a.obey()
    stage.is_full = True
    assert stage.refusal(a.beat) is ErrorCode.NOT_ENOUGH_REPLICAS
    stage.is_full = False
    stage.pass_time(1_999)
    assert "a" in stage.group.members
    stage.pass_time(1)
    assert "a" not in stage.group.members
