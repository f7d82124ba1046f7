"""Streams groups through their APIs: topics made for them, tasks, offsets, and what others may do to such a group."""

import pytest

from ottla.broker import streams_topics
from ottla.broker.apis import (
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    describe_groups,
    heartbeat,
    incremental_alter_configs,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    streams_group_describe,
    streams_group_heartbeat,
    sync_group,
    txn_offset_commit,
    update_features,
)
from ottla.broker.coordination import Coordination
from ottla.broker.internal_topics import OFFSETS, TRANSACTIONS, make
from ottla.broker.session import Session
from ottla.groups.streams.statuses import StatusCode
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.wire.messages.join_group import JoinGroupRequest
from ottla.wire.messages.leave_group import LeaveGroupRequest
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.offset_commit import OffsetCommitRequest
from ottla.wire.messages.offset_delete import OffsetDeleteRequest
from ottla.wire.messages.offset_fetch import OffsetFetchRequest
from ottla.wire.messages.streams_group_describe import StreamsGroupDescribeRequest
from ottla.wire.messages.sync_group import SyncGroupRequest
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from ottla.wire.messages.update_features import UpdateFeaturesRequest
from tests.unit.broker.test_coordinators import Writer
from tests.unit.groups.test_streams_stage import Request, ids, info, pairs, subtopology, topology

GROUP = "app"
GROUP_RESOURCE = 32
AT_ONCE = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
}
# A word count: what is read is written again by key, and counted in a store.
COUNT = topology(
    subtopology("0", ["lines"], sinks=["app-words"]),
    subtopology("1", repartitions=[info("app-words")], changelogs=["app-counts"]),
)
TASKS = {("0", 0), ("0", 1), ("1", 0), ("1", 1)}
MISSING = StatusCode.MISSING_INTERNAL_TOPICS


def prepared(station):
    """Give a broker its internal topics, and the application its input."""
    station.connection.session = Session("PLAINTEXT")
    for topic in (OFFSETS, TRANSACTIONS):
        make(station.broker, topic, lambda code: None)
    station.settle()
    station.create("lines", 2)
    return station


@pytest.fixture
def broker(make_station):
    """A broker that assigns tasks as soon as they are asked for."""
    return prepared(make_station(**AT_ONCE))


class Thread:
    """A thread of an application, which runs what it is told to."""

    def __init__(self, station, name="a", brings=COUNT):
        self.station = station
        self.name = name
        self.brings = brings
        self.epoch = 0
        self.active, self.standby = set(), set()

    def beat(self, version=None):
        """Send a heartbeat, and return the answer."""
        fields = {}
        if self.epoch == 0:
            fields = {"topology": self.brings, "process_id": self.name, "rebalance_timeout_ms": 60_000}
        answer = self.send(
            version,
            member_epoch=self.epoch,
            active_tasks=ids(self.active),
            standby_tasks=ids(self.standby),
            warmup_tasks=[],
            **fields,
        )
        if not answer.error_code:
            self.epoch = answer.member_epoch
            if answer.active_tasks is not None:
                self.active, self.standby = pairs(answer.active_tasks), pairs(answer.standby_tasks)
        return answer

    def send(self, version=None, **fields):
        request = Request(group_id=GROUP, member_id=self.name, **fields)
        return self.station.ask(streams_group_heartbeat.API, request, version)

    def settle(self, *others):
        """Beat, and let others beat, until nothing moves any more."""
        for _ in range(6):
            for each in (self, *others):
                assert each.beat().error_code == 0
        return self

    def leave(self):
        assert self.send(member_epoch=-1).error_code == 0
        self.epoch, self.active, self.standby = 0, set(), set()


def statuses(answer):
    return [status.status_code for status in answer.status]


def described(station, *names, **fields):
    request = StreamsGroupDescribeRequest(group_ids=list(names or (GROUP,)), **fields)
    return station.ask(streams_group_describe.API, request).groups


def configure(station, name, value):
    kind = IncrementalAlterConfigsRequest.AlterConfigsResource
    config = kind.AlterableConfig(name=name, config_operation=0, value=value)
    wish = kind(resource_type=GROUP_RESOURCE, resource_name=GROUP, configs=[config])
    answer = station.ask(incremental_alter_configs.API, IncrementalAlterConfigsRequest(resources=[wish]))
    return answer.responses[0].error_code


# Topics


def test_the_topics_an_application_needs_are_made_for_it(broker):
    a = Thread(broker)
    answer = a.beat()
    assert statuses(answer) == [MISSING]
    topics = broker.broker.image.topics.by_name
    assert [len(topics[name].partitions) for name in ("app-words", "app-counts")] == [2, 2]
    answer = a.beat()
    assert (statuses(answer), a.active) == ([], TASKS)
    assert described(broker)[0].group_state == "Stable"


def test_topics_that_are_being_made_are_not_asked_for_again(broker):
    submitted = []
    submit = broker.broker.submit
    broker.broker.submit = lambda decide, done: submitted.append(done) or submit(decide, done)
    broker.held = True
    a, b = Thread(broker, "a"), Thread(broker, "b")
    for each in (a, b, a, b):
        assert statuses(each.beat()) == [MISSING]
    assert len(submitted) == 1
    broker.held = False
    broker.settle(3_600_000)


def test_why_a_topic_can_not_be_made_is_told_until_it_is_tried_again(broker):
    wrong = [info(f"store-{number}", **{"retention.ms": "long"}) for number in range(5)]
    brings = topology(subtopology("0", ["lines"], changelogs=["fine"]))
    brings.subtopologies[0].state_changelog_topics += wrong
    a = Thread(broker, brings=brings)
    a.beat()
    [status] = a.beat().status
    words, _, why = status.status_detail.partition("; Creation failed: ")
    assert words == "Internal topics are missing: store-0, store-1, store-2 and 2 additional topics"
    assert why.startswith("store-0 (Invalid value long for configuration retention.ms")
    assert why.endswith("and 2 more.")
    assert "fine" in broker.broker.image.topics.by_name
    asked = []
    submit = broker.broker.submit
    broker.broker.submit = lambda decide, done: asked.append(decide) or submit(decide, done)
    broker.settle(9_999)
    a.beat()
    assert not asked, "two heartbeats are not over"
    broker.settle(1)
    a.beat()
    assert len(asked) == 1


def test_no_more_failures_are_remembered_than_fit(broker, monkeypatch):
    monkeypatch.setattr(streams_topics, "_FAILURES_MAX", 2)
    brings = topology(subtopology("0", ["lines"]))
    wrong = [info(f"store-{number}", **{"retention.ms": "long"}) for number in range(3)]
    brings.subtopologies[0].state_changelog_topics += wrong
    a = Thread(broker, brings=brings)
    [status] = a.beat().status
    assert status.status_detail.count("Invalid value long") == 2


@pytest.mark.parametrize(
    ("brings", "words"),
    [
        (
            topology(subtopology("0", ["__consumer_offsets", "lines"])),
            "Use of Kafka internal topics __consumer",
        ),
        (topology(subtopology("0", ["lines"], sinks=["__transaction_state"])), "is prohibited."),
        (topology(subtopology("0", ["not so", "lines"])), "Topic names not so are not valid topic names."),
        (topology(subtopology("0", ["lines"], changelogs=[".."])), "Topic names .. are not valid"),
        (topology(subtopology("0", repartitions=[info("")])), "Topic names  are not valid"),
    ],
)
def test_topics_that_no_application_may_have(broker, brings, words):
    answer = Thread(broker, brings=brings).beat()
    assert answer.error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert words in answer.error_message


# Who may speak the protocol


def test_a_broker_speaks_the_protocols_it_is_told_to(make_station):
    station = prepared(make_station(**{"group.coordinator.rebalance.protocols": "classic"}))
    assert Thread(station).beat().error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [group.error_code for group in described(station, "g", "h")] == [ErrorCode.UNSUPPORTED_VERSION] * 2
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", rebalance_timeout_ms=5_000)
    assert station.ask(consumer_group_heartbeat.API, request).error_code == ErrorCode.UNSUPPORTED_VERSION
    answer = station.ask(consumer_group_describe.API, ConsumerGroupDescribeRequest(group_ids=["g"]))
    assert answer.groups[0].error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_cluster_has_to_agree_to_the_protocol(broker):
    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature="streams.version", max_version_level=0, upgrade_type=2
    )
    answer = broker.ask(update_features.API, UpdateFeaturesRequest(feature_updates=[update]))
    assert answer.error_code == 0, answer
    assert Thread(broker).beat().error_code == ErrorCode.UNSUPPORTED_VERSION
    assert described(broker)[0].error_code == ErrorCode.UNSUPPORTED_VERSION


def test_without_a_coordinator_the_answer_says_so(make_station):
    station = make_station(**AT_ONCE)
    station.connection.session = Session("PLAINTEXT")
    assert Thread(station).beat().error_code == ErrorCode.NOT_COORDINATOR
    assert described(station)[0].error_code == ErrorCode.NOT_COORDINATOR


# Settings of a group


def test_settings_of_a_group_hold(broker):
    a = Thread(broker).settle()
    assert a.beat().heartbeat_interval_ms == 5_000
    assert configure(broker, "streams.heartbeat.interval.ms", "4999") == ErrorCode.INVALID_CONFIG
    assert configure(broker, "streams.heartbeat.interval.ms", "6000") == 0
    assert a.beat().heartbeat_interval_ms == 6_000
    before = described(broker)[0].group_epoch
    assert configure(broker, "streams.num.standby.replicas", "1") == 0
    a.beat()
    assert described(broker)[0].group_epoch == before + 1
    b = Thread(broker, "b")
    a.settle(b)
    assert a.standby | b.standby == {("1", 0), ("1", 1)}
    assert configure(broker, "streams.session.timeout.ms", "50000") == 0
    a.beat()
    broker.settle(49_999)
    assert a.name in [member.member_id for member in described(broker)[0].members]
    broker.settle(1)
    assert described(broker)[0].members == []


def test_a_group_waits_as_long_as_it_is_told_to(broker):
    Thread(broker).settle().leave()
    assert configure(broker, "streams.initial.rebalance.delay.ms", "700") == 0
    a = Thread(broker)
    assert statuses(a.beat()) == [StatusCode.ASSIGNMENT_DELAYED]
    broker.settle(699)
    assert statuses(a.beat()) == [StatusCode.ASSIGNMENT_DELAYED]
    broker.settle(1)
    a.beat()
    assert a.active == TASKS


# Seen from outside


def test_groups_are_listed_by_type_and_state(broker):
    def listed(**filters):
        answer = broker.ask(list_groups.API, ListGroupsRequest(**filters))
        return [
            (each.group_id, each.group_type, each.protocol_type, each.group_state) for each in answer.groups
        ]

    a = Thread(broker)
    a.beat()
    assert listed(states_filter=["notready"]) == [(GROUP, "streams", "streams", "NotReady")]
    a.beat()
    assert listed(types_filter=["Streams"]) == [(GROUP, "streams", "streams", "Stable")]
    assert listed(states_filter=["NotReady"]) == listed(types_filter=["consumer"]) == []
    a.leave()
    assert listed(states_filter=["Empty"], types_filter=["streams"]) == [
        (GROUP, "streams", "streams", "Empty")
    ]


def test_a_group_is_described_with_its_tasks(broker):
    a, b = Thread(broker, "a"), Thread(broker, "b")
    a.settle(b)
    [group] = described(broker, include_authorized_operations=True, include_topology_description=True)
    assert (group.group_state, group.authorized_operations) == ("Stable", 0b1101_0100_1000)
    assert (group.assignor_name, group.topology_description_status) == ("sticky", 1)
    assert {member.member_id: pairs(member.assignment.active_tasks) for member in group.members} == {
        "a": a.active,
        "b": b.active,
    }
    [store] = group.topology.subtopologies[1].state_changelog_topics
    assert (store.name, store.partitions) == ("app-counts", 2)
    [known, other, nameless] = described(broker, GROUP, "other", "")
    assert (known.error_code, other.error_code) == (0, ErrorCode.GROUP_ID_NOT_FOUND)
    assert nameless.error_code == ErrorCode.INVALID_GROUP_ID
    old = broker.ask(describe_groups.API, DescribeGroupsRequest(groups=[GROUP]), 6).groups[0]
    assert (old.error_code, old.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")


def test_a_new_coordinator_knows_the_group(broker):
    a, b = Thread(broker, "a"), Thread(broker, "b")
    a.settle(b)
    before = described(broker)
    broker.broker.coordination = Coordination(broker.broker, broker.entropy.uuid)
    [found] = described(broker)
    assert found.members == before[0].members
    a.settle(b)
    assert described(broker) == before


def test_the_first_version_of_the_protocol_is_spoken(broker):
    a = Thread(broker)
    a.beat(0)
    a.beat(0)
    assert a.active == TASKS
    request = StreamsGroupDescribeRequest(group_ids=[GROUP])
    assert broker.ask(streams_group_describe.API, request, 0).groups[0].group_state == "Stable"


# Requests of the classic protocol


def join(station, member_id=""):
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="stream", metadata=b"m")
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[protocol],
    )
    return station.ask(join_group.API, request, 5)


def test_classic_members_do_not_get_in_while_others_are(broker):
    Thread(broker).settle()
    assert join(broker).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    request = SyncGroupRequest(group_id=GROUP, member_id="a", generation_id=2)
    assert broker.ask(sync_group.API, request, 4).error_code == unknown
    request = HeartbeatRequest(group_id=GROUP, member_id="a", generation_id=2)
    assert broker.ask(heartbeat.API, request, 4).error_code == unknown
    leaver = LeaveGroupRequest.MemberIdentity(member_id="a")
    answer = broker.ask(leave_group.API, LeaveGroupRequest(group_id=GROUP, members=[leaver]), 5)
    assert answer.members[0].error_code == unknown


def test_an_application_may_change_its_protocol_while_it_is_down(broker):
    a = Thread(broker).settle()
    assert commit(broker, a, 5) == 0
    a.leave()
    answer = join(broker)
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert described(broker)[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert committed(broker) == 5
    broker.settle(10_000)
    b = Thread(broker).settle()
    assert b.active == TASKS
    assert committed(broker) == 5


# Offsets


def commit(station, thread=None, offset=1, partition=0, *, epoch=None, version=9, topic="lines"):
    kind = OffsetCommitRequest.OffsetCommitRequestTopic
    part = kind.OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
    request = OffsetCommitRequest(
        group_id=GROUP,
        member_id="" if thread is None else thread.name,
        generation_id_or_member_epoch=(-1 if thread is None else thread.epoch) if epoch is None else epoch,
        topics=[kind(name=topic, partitions=[part])],
    )
    return station.ask(offset_commit.API, request, version).topics[0].partitions[0].error_code


def committed(station, partition=0, **fields):
    kind = OffsetFetchRequest.OffsetFetchRequestGroup
    topic = kind.OffsetFetchRequestTopics(name="lines", partition_indexes=[partition])
    request = OffsetFetchRequest(groups=[kind(group_id=GROUP, topics=[topic], **fields)])
    [group] = station.ask(offset_fetch.API, request, 9).groups
    return group.error_code or group.topics[0].partitions[0].committed_offset


def test_members_commit_in_their_epoch(broker):
    a = Thread(broker).settle()
    assert commit(broker, a, 7) == 0
    assert committed(broker) == committed(broker, member_id="a", member_epoch=a.epoch) == 7
    assert committed(broker, member_id="a", member_epoch=a.epoch - 1) == ErrorCode.STALE_MEMBER_EPOCH
    assert committed(broker, member_id="x", member_epoch=a.epoch) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(broker, a, epoch=a.epoch + 1) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(broker, a, version=8) == ErrorCode.UNSUPPORTED_VERSION
    assert commit(broker, Thread(broker, "x"), epoch=a.epoch) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(broker) == ErrorCode.UNKNOWN_MEMBER_ID, "nobody commits for a group that has members"
    a.leave()
    assert commit(broker, offset=8) == 0
    assert committed(broker) == 8


def test_who_is_behind_commits_for_the_tasks_it_kept(broker):
    a = Thread(broker).settle()
    before, epoch = a.active, a.epoch
    a.settle(Thread(broker, "b"))
    assert a.epoch > epoch
    [(_, kept)] = [task for task in a.active if task[0] == "0"]
    [(_, lost)] = [task for task in before - a.active if task[0] == "0"]
    assert commit(broker, a, 3, kept, epoch=epoch) == 0
    assert commit(broker, a, 3, lost, epoch=epoch) == ErrorCode.STALE_MEMBER_EPOCH
    broker.create("elsewhere")
    assert commit(broker, a, 3, 0, epoch=epoch, topic="elsewhere") == ErrorCode.STALE_MEMBER_EPOCH
    assert (committed(broker, kept), committed(broker, lost)) == (3, -1)


def test_a_transaction_commits_for_a_member(broker):
    a = Thread(broker).settle()
    writer = Writer(broker, version=6)
    kind = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    part = kind.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=4)

    def commit_as(member_id, epoch):
        request = TxnOffsetCommitRequest(
            transactional_id=writer.name,
            group_id=GROUP,
            producer_id=writer.id,
            producer_epoch=writer.epoch,
            member_id=member_id,
            generation_id_or_member_epoch=epoch,
            topics=[kind(name="lines", partitions=[part])],
        )
        return broker.ask(txn_offset_commit.API, request, 5).topics[0].partitions[0].error_code

    assert commit_as("a", a.epoch + 1) == ErrorCode.ILLEGAL_GENERATION
    assert commit_as("x", a.epoch) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_as("a", a.epoch) == 0
    assert writer.end(committed=True, version=5) == 0
    assert committed(broker) == 4


def test_offsets_and_groups_that_are_in_use_are_not_deleted(broker):
    a = Thread(broker).settle()
    broker.create("elsewhere")
    assert commit(broker, a, 7) == commit(broker, a, 7, topic="elsewhere") == 0

    def forget(name):
        topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
        part = topic.OffsetDeleteRequestPartition(partition_index=0)
        request = OffsetDeleteRequest(group_id=GROUP, topics=[topic(name=name, partitions=[part])])
        answer = broker.ask(offset_delete.API, request)
        assert answer.error_code == 0
        return answer.topics[0].partitions[0].error_code

    def delete():
        return broker.ask(delete_groups.API, DeleteGroupsRequest(groups_names=[GROUP])).results[0].error_code

    assert (forget("lines"), forget("elsewhere")) == (ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, 0)
    assert delete() == ErrorCode.NON_EMPTY_GROUP
    a.leave()
    assert committed(broker) == 7
    assert delete() == 0
    assert committed(broker) == -1
    assert described(broker)[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_nobody_reads_expire_and_the_group_with_them(make_station):
    minutes, check_ms = 3, 60_000
    station = prepared(
        make_station(
            **AT_ONCE,
            **{
                "offsets.retention.minutes": str(minutes),
                "offsets.retention.check.interval.ms": str(check_ms),
            },
        )
    )
    a = Thread(station).settle()
    assert commit(station, a, 7) == 0
    for _ in range(10):
        station.settle(30_000)
        a.beat()
    assert committed(station) == 7, "a member reads the topic"
    a.leave()
    station.settle(minutes * 60_000 + 2 * check_ms)
    assert committed(station) == -1
    assert described(station)[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    station.broker.coordination = Coordination(station.broker, station.entropy.uuid)
    assert described(station)[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
