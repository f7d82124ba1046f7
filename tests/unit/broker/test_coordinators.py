"""Coordinators: one machine a partition, loaded on first use, found again after a restart, gone with its partition."""

from types import SimpleNamespace

import pytest

from ottla.broker import coordinators
from ottla.broker.apis import (
    add_partitions_to_txn,
    consumer_group_heartbeat,
    describe_groups,
    end_txn,
    find_coordinator,
    init_producer_id,
    list_groups,
    list_transactions,
    offset_commit,
    offset_fetch,
    produce,
    txn_offset_commit,
)
from ottla.broker.coordination import Coordination
from ottla.broker.coordinators import partition_of
from ottla.broker.internal_topics import OFFSETS, TRANSACTIONS, make
from ottla.broker.markers import Marker
from ottla.broker.transaction_coordination import TransactionCoordination
from ottla.channel.connections import TURN_COST_MAX
from ottla.partition.partition import Partition
from ottla.wire.batch import build_batch
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.list_transactions import ListTransactionsRequest
from ottla.wire.messages.offset_commit import OffsetCommitRequest
from ottla.wire.messages.offset_fetch import OffsetFetchRequest
from ottla.wire.messages.produce import ProduceRequest
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from ottla.wire.record import Record


@pytest.mark.parametrize(
    ("name", "java_hash"),
    [("", 0), ("hello", 99162322), ("Hello World", -862545276), ("Aa", 2112), ("BB", 2112), ("😀", 1772899)],
)
def test_a_name_belongs_where_java_says(name, java_hash):
    assert partition_of(name, 50) == abs(java_hash) % 50


def test_long_names_are_not_kept():
    """Ten thousand of the longest would be 320 MB."""
    kept = coordinators._partition_of.cache_info().currsize
    assert partition_of("long" * 8000, 50) == abs(-661_691_648) % 50
    assert coordinators._partition_of.cache_info().currsize == kept


def test_the_smallest_hash_is_no_trap():
    assert partition_of("polygenelubricants", 50) == 0  # Java's hash of it is -2^31


def commit(station, group, topic, offset, **fields):
    topics = OffsetCommitRequest.OffsetCommitRequestTopic
    part = topics.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata="m"
    )
    request = OffsetCommitRequest(group_id=group, topics=[topics(name=topic, partitions=[part])], **fields)
    return station.ask(offset_commit.API, request, 8).topics[0].partitions[0].error_code


def committed(station, group, topic, **fields):
    topics = OffsetFetchRequest.OffsetFetchRequestGroup.OffsetFetchRequestTopics
    asked = OffsetFetchRequest.OffsetFetchRequestGroup(
        group_id=group, topics=[topics(name=topic, partition_indexes=[0])]
    )
    response = station.ask(offset_fetch.API, OffsetFetchRequest(groups=[asked], **fields), 9)
    group = response.groups[0]
    return group.error_code or (part := group.topics[0].partitions[0]).error_code or part.committed_offset


def made(station):
    for topic in (OFFSETS, TRANSACTIONS):
        make(station.broker, topic, lambda code: None)
    station.settle()


def test_find_coordinator_makes_the_topic_and_answers_at_once(station):
    response = station.ask(find_coordinator.API, FindCoordinatorRequest(coordinator_keys=["a", "b"]), 6)
    assert [(each.key, each.node_id, each.error_code) for each in response.coordinators] == [
        ("a", 1, 0),
        ("b", 1, 0),
    ]
    assert len(station.broker.image.topics.by_name["__consumer_offsets"].partitions) == 50
    old = station.ask(find_coordinator.API, FindCoordinatorRequest(key="a", key_type=1), 2)
    assert (old.node_id, old.error_code) == (1, 0)
    refused = station.ask(find_coordinator.API, FindCoordinatorRequest(key="a", key_type=9), 2)
    assert (refused.node_id, refused.error_code) == (-1, ErrorCode.INVALID_REQUEST)


def test_share_partitions_are_keys_of_their_own_kind(station):
    def find(key, version=6):
        request = FindCoordinatorRequest(coordinator_keys=[key], key_type=2)
        return station.ask(find_coordinator.API, request, version).coordinators[0].error_code

    assert find("g:AAAAAAAAAAAAAAAAAAAAAQ:0") == 0
    assert find("g:AAAAAAAAAAAAAAAAAAAAAQ:0", 5) == ErrorCode.INVALID_REQUEST
    for key in ("g", "g:nonsense:0", ":AAAAAAAAAAAAAAAAAAAAAQ:0", "g:AAAAAAAAAAAAAAAAAAAAAQ:x"):
        assert find(key) == ErrorCode.INVALID_REQUEST


def test_without_the_topic_nobody_coordinates(station):
    assert commit(station, "g", "t", 5) == ErrorCode.NOT_COORDINATOR


def test_offsets_are_there_after_the_machine_was_loaded_anew(station):
    made(station)
    station.create("t")
    assert commit(station, "g", "t", 5) == 0
    assert committed(station, "g", "t") == 5
    station.broker.coordination = Coordination(station.broker, station.entropy.uuid)
    assert committed(station, "g", "t") == 5
    assert committed(station, "other", "t") == -1


def test_a_partition_that_fails_takes_its_coordinator_along(station):
    made(station)
    station.create("t")
    assert commit(station, "g", "t", 5) == 0
    index = partition_of("g", 50)
    station.table.by_name("__consumer_offsets", index).fail(BrokerError(ErrorCode.KAFKA_STORAGE_ERROR))
    assert commit(station, "g", "t", 6) == ErrorCode.NOT_COORDINATOR


def test_groups_of_all_partitions_are_listed_and_described(station):
    made(station)
    station.create("t")
    for group in ("a", "b", "c"):
        assert commit(station, group, "t", 1) == 0
    listed = station.ask(list_groups.API, ListGroupsRequest(), 5)
    assert sorted(group.group_id for group in listed.groups) == ["a", "b", "c"]
    described = station.ask(describe_groups.API, DescribeGroupsRequest(groups=["b", "a"]), 5)
    assert {group.group_id: group.group_state for group in described.groups} == {"a": "Empty", "b": "Empty"}
    described = station.ask(describe_groups.API, DescribeGroupsRequest(groups=["b", "a"] * 50), 5)
    assert sorted(group.group_id for group in described.groups) == ["a", "a", "b", "b"]  # and no more
    asked = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="a", topics=None)
    fetched = station.ask(offset_fetch.API, OffsetFetchRequest(groups=[asked] * 50), 9)
    assert [group.group_id for group in fetched.groups] == ["a", "a"]


class Writer:
    """A transactional producer that speaks the wire's words."""

    def __init__(self, station, name="tx", version=4):
        self.station = station
        self.name = name
        answer = station.ask(
            init_producer_id.API,
            InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000),
            version,
        )
        assert answer.error_code == 0
        self.id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0

    def add(self, *topics):
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=[0])
                for topic in topics
            ],
        )
        response = self.station.ask(add_partitions_to_txn.API, request, 3)
        return [
            part.partition_error_code
            for topic in response.results_by_topic_v3_and_below
            for part in topic.results_by_partition
        ]

    def write(self, topic, version=9):
        records = build_batch(
            [Record(0, self.station.clock.ms, b"k", b"v", ())],
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
            transactional=True,
        )
        data = ProduceRequest.TopicProduceData
        request = ProduceRequest(
            transactional_id=self.name,
            acks=-1,
            topic_data=[
                data(name=topic, partition_data=[data.PartitionProduceData(index=0, records=records)])
            ],
        )
        code = self.station.ask(produce.API, request, version).responses[0].partition_responses[0].error_code
        self.sequence += code == 0
        return code

    def end(self, *, committed, version=4):
        request = EndTxnRequest(
            transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch, committed=committed
        )
        answer = self.station.ask(end_txn.API, request, version)
        self.station.settle()
        if version >= 5 and not answer.error_code:
            self.epoch, self.sequence = answer.producer_epoch, 0
        return answer.error_code

    def commit_offset(self, group, topic, offset, version=3):
        topics = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        part = topics.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=group,
            producer_id=self.id,
            producer_epoch=self.epoch,
            topics=[topics(name=topic, partitions=[part])],
        )
        return self.station.ask(txn_offset_commit.API, request, version).topics[0].partitions[0].error_code


def test_a_batch_is_taken_only_for_a_partition_in_the_transaction(station):
    made(station)
    station.create("t")
    writer = Writer(station)
    assert writer.write("t") == ErrorCode.INVALID_TXN_STATE
    assert writer.add("t", "nowhere") == [
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert writer.add("t") == [0]
    assert writer.write("t") == 0
    log = station.table.by_name("t", 0).log
    assert log.in_transaction(writer.id, writer.epoch)
    # The next transaction of v2 has the next epoch, and is not that one, though its marker may be on its way.
    assert not log.in_transaction(writer.id, writer.epoch + 1)
    assert writer.end(committed=True) == 0
    assert log.first_unstable_offset is None
    assert log.end_offset == 2
    assert log.last_stable_offset(2) == 2


def test_new_clients_have_their_partitions_added_on_the_way(station):
    made(station)
    station.create("t")
    writer = Writer(station, version=6)
    before = writer.epoch
    assert writer.write("t", version=12) == 0
    assert writer.end(committed=False, version=5) == 0
    assert writer.epoch == before + 1
    assert writer.write("t", version=12) == 0
    assert [aborted[0] for aborted in station.table.by_name("t", 0).log.aborted_transactions(0, 3)] == [
        writer.id
    ]


def test_a_machine_that_reads_what_is_not_durable_yet_answers_once_it_is(station):
    """After a start the marker of a transaction may be written, and not synced, when a group is first asked for."""
    made(station)
    station.create("t")
    assert commit(station, "g", "t", 5) == 0
    partition = station.table.by_name("__consumer_offsets", partition_of("g", 50))
    at_once, partition._flusher = partition._flusher, SimpleNamespace(appended=lambda _: None)
    writer = Writer(station)
    marker = Marker(writer.id, writer.epoch, 0, committed=True)
    station.broker.transactions.markers.write(OFFSETS.name, partition_of("g", 50), marker, lambda code: None)
    station.broker.coordination = Coordination(station.broker, station.entropy.uuid)
    asked = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
    answers = []
    pending = offset_fetch.API.handle(
        OffsetFetchRequest(groups=[asked]), 9, station.connection, station.broker
    )
    pending.then(answers.append)
    assert not answers
    at_once.appended(partition)
    assert answers and answers[0].groups[0].topics[0].partitions[0].committed_offset == 5


def test_offsets_of_a_transaction_count_when_it_is_committed(station):
    made(station)
    station.create("t")
    writer = Writer(station, version=6)
    for offset, committed_, found in ((7, True, 7), (9, False, 7)):
        assert writer.commit_offset("g", "t", offset, version=5) == 0
        assert committed(station, "g", "t", require_stable=True) == ErrorCode.UNSTABLE_OFFSET_COMMIT
        assert writer.end(committed=committed_, version=5) == 0
        assert committed(station, "g", "t", require_stable=True) == found
    station.broker.coordination = Coordination(station.broker, station.entropy.uuid)
    assert committed(station, "g", "t", require_stable=True) == 7


def test_a_second_producer_of_the_same_id_fences_the_first(station):
    made(station)
    station.create("t")
    first = Writer(station)
    assert first.add("t") == [0]
    assert first.write("t") == 0
    station.ask(
        init_producer_id.API, InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000), 4
    )
    station.settle()
    second = Writer(station)
    assert second.epoch > first.epoch
    assert first.add("t") == [ErrorCode.PRODUCER_FENCED]
    assert first.end(committed=True) == ErrorCode.PRODUCER_FENCED
    assert station.table.by_name("t", 0).log.first_unstable_offset is None


def test_a_transaction_is_completed_though_too_few_replicas_were_in_sync_for_a_while(station, monkeypatch):
    made(station)
    station.create("t")
    writer = Writer(station)
    assert writer.add("t") == [0]
    assert writer.write("t") == 0
    real, tries = Partition.append_own, []

    def append_own(self, *arguments, **keywords):
        if self.topic == "__transaction_state":
            tries.append(self)
            if len(tries) in (2, 3):  # the end is decided, and the markers are written
                raise BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS)
        return real(self, *arguments, **keywords)

    monkeypatch.setattr(Partition, "append_own", append_own)
    assert writer.end(committed=True) == 0
    assert writer.add("t") == [ErrorCode.CONCURRENT_TRANSACTIONS]
    for _ in range(3):
        station.settle(1_000)
    assert len(tries) == 4
    assert writer.add("t") == [0]


def test_an_overdue_transaction_is_aborted(station):
    made(station)
    station.create("t")
    writer = Writer(station)
    assert writer.add("t") == [0]
    assert writer.write("t") == 0
    station.settle(61_000)
    log = station.table.by_name("t", 0).log
    assert log.first_unstable_offset is None
    listed = station.ask(list_transactions.API, ListTransactionsRequest(), 0)
    assert [(each.transactional_id, each.transaction_state) for each in listed.transaction_states] == [
        ("tx", "CompleteAbort")
    ]


def test_a_transaction_that_was_open_at_the_start_ends_though_nobody_asks(station):
    made(station)
    station.create("t")
    writer = Writer(station)
    assert writer.add("t") == [0]
    assert writer.write("t") == 0
    station.broker.transactions = TransactionCoordination(
        station.broker, {OFFSETS.name: station.broker.coordination.groups}
    )
    station.timers._due.clear()  # the one before is gone
    log = station.table.by_name("t", 0).log
    station.settle(120_000)
    assert log.in_transaction(writer.id, writer.epoch), "nobody has read the log"
    for _ in range(200):
        if not station.broker.load_some():
            break
    station.settle()
    assert log.first_unstable_offset is None
    assert not station.broker.load_some()


def test_only_logs_that_hold_something_are_read_after_the_start(station):
    made(station)
    station.create("t")
    assert commit(station, "g", "t", 5) == 0
    station.broker.coordination = Coordination(station.broker, station.entropy.uuid)
    assert list(station.broker.coordination.groups.machines) == []
    assert station.broker.load_some()
    assert not station.broker.load_some()
    assert [list(each.shelf.groups) for each in station.broker.coordination.groups.machines] == [["g"]]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (".*l.*", {"idle", "early", "late"}),
        ("late|e", {"late"}),
        ("lat", set()),
        ("", {"idle", "early", "late"}),
        (r"\Qearly\E", {"early"}),
        ("(?i)LATE", {"late"}),
        ("(e)\\1", ErrorCode.INVALID_REGULAR_EXPRESSION),
        ("(?=late)late", ErrorCode.INVALID_REGULAR_EXPRESSION),
        ("(", ErrorCode.INVALID_REGULAR_EXPRESSION),
    ],
)
def test_patterns_for_transactional_ids_are_those_of_re2(station, pattern, found):
    made(station)
    for name in ("idle", "early", "late"):
        Writer(station, name)
    listed = station.ask(list_transactions.API, ListTransactionsRequest(transactional_id_pattern=pattern), 2)
    ids = {each.transactional_id for each in listed.transaction_states}
    assert (listed.error_code or ids) == found


def test_a_pattern_uses_up_the_turn_of_its_connection(station):
    """64 of them in one turn held everybody else up for seconds."""
    made(station)
    cost = station.connections.turn_cost
    station.ask(list_transactions.API, ListTransactionsRequest(transactional_id_pattern="a.*"), 2)
    assert station.connections.turn_cost - cost > TURN_COST_MAX
    beat = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="m", member_epoch=0, rebalance_timeout_ms=1, subscribed_topic_regex="a.*"
    )
    station.connection.session = SimpleNamespace(client_id=b"me")
    cost = station.connections.turn_cost
    station.ask(consumer_group_heartbeat.API, beat, 1)
    assert station.connections.turn_cost - cost > TURN_COST_MAX
