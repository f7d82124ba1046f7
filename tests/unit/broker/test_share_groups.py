"""Share groups through their APIs: members, records handed out, acknowledged, given back, and found again later."""

from types import SimpleNamespace

import pytest

from ottla.broker.api import Pending
from ottla.broker.apis import (
    alter_share_group_offsets,
    delete_share_group_offsets,
    describe_share_group_offsets,
    incremental_alter_configs,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    share_acknowledge,
    share_fetch,
    share_group_describe,
    share_group_heartbeat,
)
from ottla.broker.internal_topics import OFFSETS, SHARE_STATE, make
from ottla.broker.session import Session
from ottla.broker.share_begin import duration_ms
from ottla.broker.share_coordination import ShareCoordination
from ottla.groups.share.groups import ShareGroups
from ottla.share.key import ShareKey
from ottla.wire.batch import read_records, scan
from ottla.wire.control import end_transaction_batch
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from ottla.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from ottla.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from ottla.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from ottla.wire.messages.read_share_group_state import ReadShareGroupStateRequest
from ottla.wire.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from ottla.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from ottla.wire.messages.share_fetch import ShareFetchRequest
from ottla.wire.messages.share_group_describe import ShareGroupDescribeRequest
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
GROUP = 32
LOCK_MS = 30_000


def with_share(station):
    """Give a broker its share groups."""
    station.broker.share = ShareCoordination(station.broker, station.reports.append)
    return station


@pytest.fixture
def shared(station):
    """A broker on which group g begins where partitions begin."""
    with_share(station)
    make(station.broker, OFFSETS, lambda code: None)
    station.settle()
    configure(station, "g", "share.auto.offset.reset", "earliest")
    return station


def configure(station, group, name, value):
    kind = IncrementalAlterConfigsRequest.AlterConfigsResource
    config = kind.AlterableConfig(name=name, config_operation=0, value=value)
    wish = kind(resource_type=GROUP, resource_name=group, configs=[config])
    answer = station.ask(incremental_alter_configs.API, IncrementalAlterConfigsRequest(resources=[wish]))
    assert answer.responses[0].error_code == 0, answer


class Member:
    """A share consumer that speaks the wire's words, on a connection of its own."""

    def __init__(self, station, name="m1", group="g"):
        self.station = station
        self.name = name
        self.group = group
        self.epoch = 0
        self.session_epoch = 0
        self.assigned = {}
        self.connection = SimpleNamespace(
            listener="PLAINTEXT",
            peer="127.0.0.1",
            closed=False,
            on_close=[],
            held=0,
            is_corked=False,
            connections=SimpleNamespace(turn_cost=0),
            session=Session("PLAINTEXT"),
        )

    def send(self, api, request, version=None):
        """Send a request, and return the answer, which may be pending."""
        version = api.versions[-1] if version is None else version
        request = api.request.decode(request.encode(version), version)
        reply = api.handle(request, version, self.connection, self.station.broker)
        self.station.settle()
        return reply

    def ask(self, api, request, version=None):
        return answer_of(api, self.send(api, request, version), version)

    def beat(self, *topics, epoch=None):
        request = ShareGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.name,
            member_epoch=self.epoch if epoch is None else epoch,
            subscribed_topic_names=list(topics) or None,
        )
        answer = self.ask(share_group_heartbeat.API, request)
        if not answer.error_code:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.assigned = {
                    each.topic_id: sorted(each.partitions) for each in answer.assignment.topic_partitions
                }
        return answer.error_code

    def join(self, *topics):
        """Beat until there is something to read; state is initialized between two heartbeats."""
        for _ in range(5):
            assert self.beat(*topics) == 0
            if self.assigned:
                return self
            self.station.settle(1_500)
        raise AssertionError("nothing was assigned")

    def fetch_request(self, *, acks=None, wait_ms=0, **fields):
        topic = ShareFetchRequest.FetchTopic
        said = acks or {}
        request = ShareFetchRequest(
            group_id=self.group,
            member_id=self.name,
            share_session_epoch=self.session_epoch,
            max_wait_ms=wait_ms,
            **{"min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500, **fields},
            topics=[
                topic(
                    topic_id=topic_id,
                    partitions=[
                        topic.FetchPartition(
                            partition_index=index,
                            acknowledgement_batches=[
                                topic.FetchPartition.AcknowledgementBatch(
                                    first_offset=low, last_offset=high, acknowledge_types=kinds
                                )
                                for low, high, kinds in said.get(index, ())
                            ],
                        )
                        for index in indexes
                    ],
                )
                for topic_id, indexes in self.assigned.items()
                if self.session_epoch == 0 or acks
            ],
        )
        if self.session_epoch >= 0:
            self.session_epoch += 1
        return request

    def park(self, **fields):
        return self.send(share_fetch.API, self.fetch_request(**fields))

    def fetch(self, **fields):
        return answer_of(share_fetch.API, self.park(**fields))

    def take(self, **fields):
        """Fetch, and return what was acquired in partition 0: (first, last, count of deliveries)."""
        return acquired(self.fetch(**fields))

    def acknowledge(self, first, last, *kinds, index=0, renew=False, version=2):
        topic = ShareAcknowledgeRequest.AcknowledgeTopic
        part = topic.AcknowledgePartition
        batch = part.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=list(kinds))
        request = ShareAcknowledgeRequest(
            group_id=self.group,
            member_id=self.name,
            share_session_epoch=self.session_epoch,
            is_renew_ack=renew,
            topics=[
                topic(
                    topic_id=next(iter(self.assigned)),
                    partitions=[part(partition_index=index, acknowledgement_batches=[batch])],
                )
            ],
        )
        answer = self.ask(share_acknowledge.API, request, version)
        if not answer.error_code and self.session_epoch >= 0:
            self.session_epoch += 1
        return answer.error_code or answer.responses[0].partitions[0].error_code

    def close(self):
        """Hang up."""
        for callback in tuple(self.connection.on_close):
            callback()
        self.station.settle()


def answer_of(api, reply, version=None):
    if isinstance(reply, Pending):
        reply = reply._message
    version = api.versions[-1] if version is None else version
    return None if reply is None else api.response.decode(reply.encode(version), version)


def acquired(answer, index=0):
    assert answer.error_code == 0, answer
    for topic in answer.responses:
        for part in topic.partitions:
            if part.partition_index == index:
                assert part.error_code == 0, part
                return [
                    (each.first_offset, each.last_offset, each.delivery_count)
                    for each in part.acquired_records
                ]
    return []


def offsets(station, group="g", topics=None):
    asked = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    request = DescribeShareGroupOffsetsRequest(groups=[asked(group_id=group, topics=topics)])
    answer = station.ask(describe_share_group_offsets.API, request)
    return {
        (topic.topic_name, part.partition_index): (part.start_offset, part.lag)
        for topic in answer.groups[0].topics
        for part in topic.partitions
    }


def test_a_member_reads_accepts_and_goes_on(shared):
    shared.create("t")
    shared.produce("t", count=3)
    member = Member(shared).join("t")
    answer = member.fetch()
    assert acquired(answer) == [(0, 2, 1)]
    assert answer.acquisition_lock_timeout_ms == LOCK_MS
    records = answer.responses[0].partitions[0].records
    assert [record.offset for pos, _ in scan(records) for record in read_records(records, pos)] == [0, 1, 2]
    assert member.take() == []
    shared.produce("t", count=2)
    answer = member.fetch(acks={0: [(0, 2, [ACCEPT])]})
    assert answer.responses[0].partitions[0].acknowledge_error_code == 0
    assert acquired(answer) == [(3, 4, 1)]
    assert member.acknowledge(3, 4, ACCEPT, ACCEPT) == 0
    # The start is the one at the time of writing; what is done with above it is counted.
    assert offsets(shared) == {("t", 0): (3, 0)}


def test_released_records_go_to_another_member(shared):
    shared.create("t")
    shared.produce("t", count=2)
    first, second = Member(shared, "m1").join("t"), Member(shared, "m2").join("t")
    assert first.take() == [(0, 1, 1)]
    assert second.take() == []
    assert second.acknowledge(0, 1, ACCEPT) == ErrorCode.INVALID_RECORD_STATE
    assert first.acknowledge(0, 1, ACCEPT, RELEASE) == 0
    assert second.take() == [(1, 1, 2)]


def test_a_parked_fetch_is_woken_by_growth(shared):
    shared.create("t")
    member = Member(shared).join("t")
    waiting = member.park(wait_ms=500)
    assert answer_of(share_fetch.API, waiting) is None
    shared.produce("t")
    shared.settle()
    assert acquired(answer_of(share_fetch.API, waiting)) == [(0, 0, 1)]


def test_a_parked_fetch_is_woken_by_a_release(shared):
    shared.create("t")
    shared.produce("t")
    first, second = Member(shared, "m1").join("t"), Member(shared, "m2").join("t")
    assert first.take() == [(0, 0, 1)]
    waiting = second.park(wait_ms=500)
    assert answer_of(share_fetch.API, waiting) is None
    assert first.acknowledge(0, 0, RELEASE) == 0
    assert acquired(answer_of(share_fetch.API, waiting)) == [(0, 0, 2)]


def test_a_parked_fetch_ends_with_the_patience_of_its_member(shared):
    shared.create("t")
    member = Member(shared).join("t")
    assert member.take() == []
    waiting = member.park(wait_ms=500)
    shared.settle(499)
    assert answer_of(share_fetch.API, waiting) is None
    shared.settle(1)
    assert answer_of(share_fetch.API, waiting).responses == []


def test_a_fetch_waits_for_as_many_bytes_as_it_asks_for(shared):
    shared.create("t")
    shared.produce("t", size=10)
    member = Member(shared).join("t")
    member.take(max_records=0)
    waiting = member.park(wait_ms=500, min_bytes=1_000)
    assert answer_of(share_fetch.API, waiting) is None
    shared.produce("t", size=2_000)
    shared.settle()
    assert acquired(answer_of(share_fetch.API, waiting)) == [(0, 1, 1)]
    shared.produce("t", size=10)
    waiting = member.park(wait_ms=500, min_bytes=1_000)
    shared.settle(500)
    assert acquired(answer_of(share_fetch.API, waiting)) == [(2, 2, 1)]


def test_a_lock_that_runs_out_frees_its_record_until_it_was_tried_too_often(shared):
    shared.create("t")
    shared.produce("t")
    first, second = Member(shared, "m1").join("t"), Member(shared, "m2").join("t")
    for count in range(1, 6):
        assert first.take() == [(0, 0, count)]
        waiting = second.park(wait_ms=0)
        assert acquired(answer_of(share_fetch.API, waiting)) == []
        shared.settle(LOCK_MS)
        first.beat(), second.beat()
    assert first.take() == []
    assert offsets(shared) == {("t", 0): (0, 0)}


def test_a_renewed_lock_lasts_longer(shared):
    shared.create("t")
    shared.produce("t")
    member = Member(shared).join("t")
    assert member.take() == [(0, 0, 1)]
    shared.settle(LOCK_MS - 1_000)
    assert member.acknowledge(0, 0, RENEW) == ErrorCode.INVALID_REQUEST
    assert member.acknowledge(0, 0, RENEW, renew=True) == 0
    shared.settle(2_000)
    assert member.take() == []
    assert member.acknowledge(0, 0, ACCEPT) == 0


def test_a_renewal_fetches_nothing(shared):
    shared.create("t")
    shared.produce("t")
    member = Member(shared).join("t")
    assert member.take() == [(0, 0, 1)]
    assert member.fetch(is_renew_ack=True).error_code == ErrorCode.INVALID_REQUEST
    member.session_epoch -= 1
    shared.produce("t")
    none = {"max_bytes": 0, "min_bytes": 0, "max_records": 0, "is_renew_ack": True}
    answer = member.fetch(acks={0: [(0, 0, [RENEW])]}, **none)
    assert acquired(answer) == []
    assert answer.responses[0].partitions[0].acknowledge_error_code == 0


def test_records_are_limited_by_count(shared):
    shared.create("t")
    for _ in range(4):
        shared.produce("t", count=5)
    member = Member(shared).join("t")
    assert member.take(max_records=6) == [(0, 9, 1)]
    assert member.take(max_records=3, share_acquire_mode=1) == [(10, 12, 1)]
    answer = member.fetch(max_records=500, batch_size=2)
    assert acquired(answer) == [(13, 14, 1), (15, 19, 1)]
    assert len(list(scan(answer.responses[0].partitions[0].records))) == 2


def test_sessions_are_in_step_or_refused(shared):
    shared.create("t")
    member = Member(shared).join("t")
    member.session_epoch = 1
    assert member.fetch().error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    member.session_epoch = 0
    assert member.fetch(acks={0: [(0, 0, [ACCEPT])]}).error_code == ErrorCode.INVALID_REQUEST
    member.session_epoch = 0
    assert member.acknowledge(0, 0, ACCEPT) == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert member.fetch().error_code == 0
    member.session_epoch = 7
    assert member.fetch().error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert Member(shared, "x" * 37).fetch().error_code == ErrorCode.INVALID_REQUEST


def test_one_session_too_many_waits_for_its_refusal(make_station):
    station = with_share(make_station(**{"group.share.max.share.sessions": "1"}))
    make(station.broker, OFFSETS, lambda code: None)
    station.create("t")
    first, second = Member(station, "m1").join("t"), Member(station, "m2").join("t")
    assert first.fetch().error_code == 0
    refused = second.park(wait_ms=100)
    assert answer_of(share_fetch.API, refused) is None
    station.settle(100)
    assert answer_of(share_fetch.API, refused).error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED


@pytest.mark.parametrize("how", ["final fetch", "final acknowledge", "disconnect"])
def test_the_end_of_a_session_gives_its_records_back(shared, how):
    shared.create("t")
    shared.produce("t", count=2)
    first, second = Member(shared, "m1").join("t"), Member(shared, "m2").join("t")
    assert first.take() == [(0, 1, 1)]
    waiting = second.park(wait_ms=500)
    if how == "disconnect":
        first.close()
    else:
        first.session_epoch = -1
        if how == "final fetch":
            assert first.fetch(acks={0: [(0, 0, [ACCEPT])]}).error_code == 0
        else:
            assert first.acknowledge(0, 0, ACCEPT) == 0
        shared.settle()
    left = (0, 1, 2) if how == "disconnect" else (1, 1, 2)
    assert acquired(answer_of(share_fetch.API, waiting)) == [left]
    second.close()
    assert len(shared.broker.share.partitions) == 0


def test_a_member_that_has_gone_is_handed_nothing(shared):
    shared.create("t")
    first, second = Member(shared, "m1").join("t"), Member(shared, "m2").join("t")
    first.park(wait_ms=500)
    second.take()
    first.close()
    shared.produce("t")
    shared.settle()
    assert second.take() == [(0, 0, 1)]


def test_progress_outlives_the_memory_of_it(shared):
    shared.create("t")
    shared.produce("t", count=4)
    member = Member(shared).join("t")
    assert member.take() == [(0, 3, 1)]
    assert member.acknowledge(0, 3, ACCEPT, RELEASE, ACCEPT, REJECT) == 0
    with_share(shared)
    member.session_epoch = 0
    assert member.take() == [(1, 1, 2)]
    assert member.acknowledge(1, 1, ACCEPT) == 0
    assert offsets(shared) == {("t", 0): (1, 0)}


def test_a_partition_that_fails_takes_its_share_partitions_along(shared):
    topic = shared.create("t")
    member = Member(shared).join("t")
    waiting = member.park(wait_ms=500)
    assert len(shared.broker.share.partitions) == 1
    shared.table.by_id(topic.id, 0).fail(BrokerError(ErrorCode.KAFKA_STORAGE_ERROR))
    shared.settle()
    answer = answer_of(share_fetch.API, waiting)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert len(shared.broker.share.partitions) == 0


def test_another_leader_epoch_begins_from_the_durable_state(shared):
    shared.create("t")
    shared.produce("t", count=2)
    member = Member(shared).join("t")
    assert member.take() == [(0, 1, 1)]
    assert member.acknowledge(0, 0, ACCEPT) == 0
    shared.table.by_name("t", 0).lead(5)
    assert member.acknowledge(1, 1, ACCEPT) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert member.take() == [(1, 1, 1)]


def test_what_the_log_lost_is_passed_over(shared):
    shared.create("t")
    for _ in range(2):
        partition = shared.produce("t", count=2)
    member = Member(shared).join("t")
    assert member.take() == [(0, 3, 1)]
    assert member.acknowledge(0, 3, RELEASE) == 0
    partition.log.raise_start_offset(2)
    assert member.take() == [(2, 3, 2)]


def test_aborted_records_are_handed_to_nobody_who_reads_committed(shared):
    configure(shared, "g", "share.isolation.level", "read_committed")
    shared.create("t")
    member = Member(shared).join("t")
    own = {"producer_id": 9, "producer_epoch": 0, "transactional": True}
    partition = shared.produce("t", count=2, base_sequence=0, **own)
    assert member.take() == []
    marker = end_transaction_batch(
        commit=False, producer_id=9, producer_epoch=0, coordinator_epoch=0, timestamp_ms=shared.clock.ms
    )
    partition.append_own(marker, shared.clock.ms)
    shared.produce("t")
    assert member.take() == [(2, 3, 1)]


def test_unknown_partitions_are_named(shared):
    shared.create("t")
    member = Member(shared).join("t")
    topic_id = next(iter(member.assigned))
    member.assigned = {topic_id: [7], b"x" * 16: [0]}
    answer = member.fetch()
    assert {
        (topic.topic_id, part.partition_index): part.error_code
        for topic in answer.responses
        for part in topic.partitions
    } == {
        (topic_id, 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (b"x" * 16, 0): ErrorCode.UNKNOWN_TOPIC_ID,
    }


def test_offsets_are_moved_and_forgotten_while_nobody_is_in(shared):
    shared.create("t")
    shared.produce("t", count=5)
    member = Member(shared).join("t")
    assert member.take() == [(0, 4, 1)]
    alter = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
    wish = alter.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=3)
    move = AlterShareGroupOffsetsRequest(group_id="g", topics=[alter(topic_name="t", partitions=[wish])])
    forget = DeleteShareGroupOffsetsRequest(
        group_id="g",
        topics=[DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic(topic_name="t")],
    )
    assert shared.ask(alter_share_group_offsets.API, move).error_code == ErrorCode.NON_EMPTY_GROUP
    assert shared.ask(delete_share_group_offsets.API, forget).error_code == ErrorCode.NON_EMPTY_GROUP
    assert member.beat(epoch=-1) == 0
    member.close()
    answer = shared.ask(alter_share_group_offsets.API, move)
    assert (answer.error_code, answer.responses[0].partitions[0].error_code) == (0, 0)
    assert offsets(shared) == {("t", 0): (3, 2)}
    again = Member(shared, "m2").join("t")
    assert again.take() == [(3, 4, 1)]
    assert again.beat(epoch=-1) == 0
    again.close()
    assert shared.ask(delete_share_group_offsets.API, forget).responses[0].error_code == 0
    assert offsets(shared) == {}


@pytest.mark.parametrize("error", [RuntimeError("unforeseen"), BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS)])
def test_who_moves_offsets_is_answered_though_the_group_cannot_take_it_in(shared, monkeypatch, error):
    shared.create("t")
    member = Member(shared).join("t")
    assert member.beat(epoch=-1) == 0
    member.close()
    alter = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
    wish = alter.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=3)
    move = AlterShareGroupOffsetsRequest(group_id="g", topics=[alter(topic_name="t", partitions=[wish])])

    def breaks(*arguments):
        raise error

    monkeypatch.setattr(ShareGroups, "state_initialized", breaks)
    answer = shared.ask(alter_share_group_offsets.API, move)
    code = error.code if isinstance(error, BrokerError) else ErrorCode.UNKNOWN_SERVER_ERROR
    assert answer.error_code in (code, ErrorCode.COORDINATOR_NOT_AVAILABLE)


def test_groups_are_described(shared):
    shared.create("t", partitions=2)
    Member(shared).join("t")
    request = ShareGroupDescribeRequest(group_ids=["g", "nobody"])
    found = {each.group_id: each for each in shared.ask(share_group_describe.API, request).groups}
    assert (found["g"].group_state, found["g"].assignor_name) == ("Stable", "simple")
    assert found["g"].members[0].assignment.topic_partitions[0].partitions == [0, 1]
    assert found["nobody"].error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_is_deleted_after_its_state(shared):
    topic = shared.create("t")
    member = Member(shared).join("t")
    results = []
    shared.broker.share.delete_group("g", results.append)
    shared.settle()
    assert results[-1].error_code == ErrorCode.NON_EMPTY_GROUP
    assert member.beat(epoch=-1) == 0
    shared.broker.share.delete_group("g", results.append)
    shared.settle()
    assert results[-1].error_code == 0
    summary = ReadShareGroupStateSummaryRequest.ReadStateSummaryData
    request = ReadShareGroupStateSummaryRequest(
        group_id="g",
        topics=[summary(topic_id=topic.id, partitions=[summary.PartitionData(partition=0, leader_epoch=0)])],
    )
    part = shared.ask(read_share_group_state_summary.API, request).results[0].partitions[0]
    assert (part.error_code, part.start_offset) == (0, -1)
    shared.broker.share.delete_group("g", results.append)
    shared.settle()
    assert results[-1].error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_without_the_topic_the_share_coordinator_is_elsewhere(shared):
    topic = shared.create("t")
    data = ReadShareGroupStateRequest.ReadStateData
    request = ReadShareGroupStateRequest(
        group_id="g",
        topics=[data(topic_id=topic.id, partitions=[data.PartitionData(partition=0, leader_epoch=0)])],
    )
    part = shared.ask(read_share_group_state.API, request).results[0].partitions[0]
    assert part.error_code == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize(
    ("text", "ms"), [("PT1H", 3_600_000), ("P1DT2M", 86_520_000), ("PT0.25S", 250), ("pt3s", 3_000)]
)
def test_durations(text, ms):
    assert duration_ms(text) == ms


def test_a_group_begins_where_its_setting_says(shared):
    shared.create("t")
    shared.produce("t")
    shared.settle(10_000)
    shared.produce("t")
    configure(shared, "d", "share.auto.offset.reset", "by_duration:PT9S")
    for group, first in (("g", 0), ("d", 1), ("latest", 2)):
        member = Member(shared, group=group).join("t")
        member.take()
        member.session_epoch = -1
        member.fetch()
        assert shared.broker.coordination.config(group, "share.auto.offset.reset")
        again = Member(shared, "m2", group=group).join("t")
        assert [each[0] for each in again.take()] == ([first] if first < 2 else [])


def state_log(shared, topic, index=0):
    key = ShareKey("g", topic.id, index)
    return shared.table.by_name(SHARE_STATE.name, shared.broker.share.states.index(key)).log


def test_what_snapshots_made_redundant_is_cut_off(make_station):
    station = with_share(make_station(**{"share.coordinator.snapshot.update.records.per.snapshot": "3"}))
    make(station.broker, OFFSETS, lambda code: None)
    topic = station.create("t")
    configure(station, "g", "share.auto.offset.reset", "earliest")
    member = Member(station).join("t")
    for offset in range(12):
        station.produce("t")
        assert member.take() == [(offset, offset, 1)]
        assert member.acknowledge(offset, offset, ACCEPT) == 0
    log = state_log(station, topic)
    assert log.start_offset == 0
    station.settle(300_000)
    assert log.start_offset > 6
    with_share(station)
    station.produce("t")
    again = Member(station, "m2").join("t")
    assert again.take() == [(12, 12, 1)]


def test_the_state_of_a_deleted_topic_is_forgotten(shared):
    topic = shared.create("t")
    Member(shared).join("t").take()
    before = state_log(shared, topic).end_offset
    machines = shared.broker.share.states.machines.machines
    assert any(machine.states for machine in machines)
    shared.broker.share.topics_deleted([topic.id])
    shared.settle()
    assert not any(machine.states for machine in machines)
    assert state_log(shared, topic).end_offset == before + 1


def test_state_begun_anew_fences_who_missed_it(shared):
    topic = shared.create("t")
    shared.produce("t", count=2)
    member = Member(shared).join("t")
    assert member.take() == [(0, 1, 1)]
    data = InitializeShareGroupStateRequest.InitializeStateData
    part = data.PartitionData(partition=0, state_epoch=99, start_offset=1)
    request = InitializeShareGroupStateRequest(
        group_id="g", topics=[data(topic_id=topic.id, partitions=[part])]
    )
    assert shared.ask(initialize_share_group_state.API, request).results[0].partitions[0].error_code == 0
    assert member.acknowledge(0, 1, ACCEPT) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert len(shared.broker.share.partitions) == 0
    assert member.take() == [(1, 1, 1)]


def test_who_leads_is_told_to_those_who_ask_the_wrong_broker(shared):
    topic = shared.create("t")
    shared.produce("t", count=2)
    member = Member(shared).join("t")
    assert member.take() == [(0, 1, 1)]
    partition = shared.table.by_name("t", 0)
    partition.error = BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    answer = member.fetch()
    part = answer.responses[0].partitions[0]
    assert part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    state = shared.broker.image.topics.by_id[topic.id].partitions[0]
    assert (part.current_leader.leader_id, part.current_leader.leader_epoch) == (1, state.leader_epoch)
    assert [(each.node_id, each.host, each.port, each.rack) for each in answer.node_endpoints] == [
        (1, "localhost", 9092, "rack-a")
    ]
    partition.error = None
    assert member.fetch().node_endpoints == []


def test_who_leads_is_told_along_with_acknowledgements(shared):
    topic = shared.create("t")
    shared.produce("t", count=2)
    member = Member(shared).join("t")
    assert member.take() == [(0, 1, 1)]
    shared.broker.share.partitions.acknowledge = lambda key, name, batches, done: done(
        BrokerError(ErrorCode.FENCED_LEADER_EPOCH)
    )
    kind = ShareAcknowledgeRequest.AcknowledgeTopic
    batch = kind.AcknowledgePartition.AcknowledgementBatch(
        first_offset=0, last_offset=1, acknowledge_types=[ACCEPT]
    )
    part = kind.AcknowledgePartition(partition_index=0, acknowledgement_batches=[batch])
    request = ShareAcknowledgeRequest(
        group_id="g",
        member_id=member.name,
        share_session_epoch=member.session_epoch,
        topics=[kind(topic_id=topic.id, partitions=[part])],
    )
    answer = member.ask(share_acknowledge.API, request)
    assert answer.responses[0].partitions[0].current_leader.leader_id == 1
    assert [each.node_id for each in answer.node_endpoints] == [1]


def test_a_mode_of_acquiring_that_is_none(shared):
    shared.create("t")
    shared.produce("t", count=4)
    member = Member(shared).join("t")
    assert member.take(max_records=1, share_acquire_mode=1) == [(0, 0, 1)]
    answer = member.fetch(acks={0: [(0, 0, [ACCEPT])]}, share_acquire_mode=7)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert member.take(share_acquire_mode=1, max_records=2) == [(1, 2, 1)], "what was said holds all the same"
    assert offsets(shared) == {("t", 0): (0, 3)}


def test_what_is_named_often_is_described_twice_at_most(shared):
    shared.create("t")
    Member(shared).join("t")
    asked = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    topic = asked.DescribeShareGroupOffsetsRequestTopic
    topics = [topic(topic_name=name, partitions=[0] * 50) for name in ("t", "absent") for _ in range(20)]
    request = DescribeShareGroupOffsetsRequest(groups=[asked(group_id="g", topics=topics)] * 30)
    answer = shared.ask(describe_share_group_offsets.API, request)
    assert [group.group_id for group in answer.groups] == ["g", "g"]
    for group in answer.groups:
        named = [
            (each.topic_name, part.partition_index) for each in group.topics for part in each.partitions
        ]
        assert sorted(named) == [("absent", 0), ("t", 0)]


def test_a_state_that_cannot_be_taken_in_is_reported_and_leaves_nobody_waiting(shared, monkeypatch):
    shared.create("t")
    shared.produce("t", count=1)
    member = Member(shared).join("t")

    def break_off(*_):
        raise RuntimeError("of a kind that nobody foresaw")

    with monkeypatch.context() as patch:
        patch.setattr("ottla.share.partition.restored", break_off)
        answer = member.fetch()
        codes = [part.error_code for topic in answer.responses for part in topic.partitions]
        assert codes == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert isinstance(shared.broker.last_failure, RuntimeError)
    assert member.take() == [(0, 0, 1)], "the next one tries again"


def test_a_search_for_the_beginning_gives_the_loop_its_turn(shared, monkeypatch):
    configure(shared, "g", "share.auto.offset.reset", "by_duration:PT1H")
    shared.create("t")
    for _ in range(5):
        shared.produce("t", count=1)
    monkeypatch.setattr("ottla.log.lookup._HEADERS_AT_ONCE", 1)
    turns = []
    call_soon = shared.broker.call_soon
    shared.broker.call_soon = lambda callback: (turns.append(callback), call_soon(callback))[1]
    shared.settle(7_200_000)
    shared.produce("t", count=1)
    wait = Member(shared).join("t").park(wait_ms=500)
    shared.settle(100)
    assert acquired(answer_of(share_fetch.API, wait)) == [(5, 5, 1)]
    assert len(turns) >= 4
