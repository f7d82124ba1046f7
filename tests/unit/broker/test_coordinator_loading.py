"""Coordinators whose load is cut off, fails or meets garbage, whose epoch passes, and whose watermark stands still."""

import errno
from types import SimpleNamespace

import pytest

from ottla.broker.apis import (
    init_producer_id,
    initialize_share_group_state,
    join_group,
    list_groups,
    offset_commit,
    offset_fetch,
)
from ottla.broker.coordination import Coordination
from ottla.broker.coordinators import partition_of
from ottla.broker.internal_topics import OFFSETS, SHARE_STATE, TRANSACTIONS, make
from ottla.broker.markers import Marker
from ottla.broker.transaction_coordination import HostedTransactions, TransactionCoordination
from ottla.groups.machine import Groups
from ottla.groups.offset_records import Place, tombstone
from ottla.partition.journal import PartitionJournal
from ottla.partition.partition import Partition
from ottla.replicated.decision import Decision
from ottla.transactions.records import record_of
from ottla.transactions.state import State
from ottla.wire.batch import build_batch
from ottla.wire.compression import Codec
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from ottla.wire.messages.join_group import JoinGroupRequest
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.offset_commit import OffsetCommitRequest
from ottla.wire.record import Record
from tests.unit.broker.test_coordinators import Writer, commit, committed

Committed = OffsetCommitRequest.OffsetCommitRequestTopic
UNKNOWN_KIND = b"\x00\x63"
PAD_BYTES = 3 << 20  # more than is read in one turn


@pytest.fixture
def station(make_station):
    station = make_station(
        **{"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}
    )
    for topic in (OFFSETS, TRANSACTIONS):
        make(station.broker, topic, lambda code: None)
    station.settle()
    station.create("t")
    return station


def groups_partition(station, group="g"):
    return station.table.by_name(OFFSETS.name, partition_of(group, 2))


def pad(station, partition):
    """Make a log too long to be read in one turn, with records that every coordinator passes over."""
    for _ in range(PAD_BYTES // (64 << 10)):
        record = Record(0, station.clock.ms, UNKNOWN_KIND, bytes(64 << 10), ())
        partition.append_own(build_batch([record]), station.clock.ms)


def put(station, partition, key, value=b""):
    partition.append_own(build_batch([Record(0, station.clock.ms, key, value, ())]), station.clock.ms)


def afresh(station):
    """Let other coordinators take over, which have read nothing yet."""
    station.timers._due.clear()
    station.broker.coordination = Coordination(station.broker, station.entropy.uuid, station.reports.append)
    station.broker.transactions = TransactionCoordination(
        station.broker, {OFFSETS.name: station.broker.coordination.groups}, station.reports.append
    )


# Leadership


def test_a_load_that_lost_its_leadership_never_serves(station):
    """Its timer would abort the transaction of before, though the producer has long gone on."""
    writer = Writer(station)
    assert writer.add("t") == [0]
    assert writer.write("t") == 0
    partition = station.table.by_name(TRANSACTIONS.name, partition_of("tx", 2))
    pad(station, partition)
    afresh(station)
    machines = station.broker.transactions.machines
    refused = []
    machines.submit(partition.index, None, refused.append)
    assert refused[0].code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    machines.lose(partition.index)
    partition.follow(partition.leader_epoch + 1)
    partition.lead(partition.leader_epoch + 1)
    machines.submit(partition.index, None, refused.append)
    station.settle(30_000)
    assert len(machines.machines) == 1
    assert writer.end(committed=True) == 0
    assert writer.add("t") == [0]
    assert writer.write("t") == 0
    station.settle(40_000)
    afresh(station)
    machines = station.broker.transactions.machines
    machines.submit(partition.index, None, refused.append)
    station.settle()
    assert writer.end(committed=True) == 0, "aborted in the log by a coordinator that lost its leadership"
    log = station.table.by_name("t", 0).log
    assert log.aborted_transactions(0, log.end_offset) == []
    assert log.first_unstable_offset is None


def test_a_journal_writes_in_the_epoch_in_which_it_was_opened_alone(station):
    partition = groups_partition(station)
    journal = PartitionJournal(partition, Codec.NONE, lambda error: None)
    partition.follow(partition.leader_epoch + 1)
    partition.lead(partition.leader_epoch + 1)
    with pytest.raises(BrokerError) as refused:
        journal.append([], station.clock.ms)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.log.end_offset == 0


def test_who_waits_to_join_is_sent_on_when_its_coordinator_is_left(station):
    """Nobody says so when a partition fails: the look-out for logs to load finds out."""
    answers = []
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[protocol],
    )
    station.connection.session = SimpleNamespace(client_id=b"c")
    join_group.API.handle(request, 3, station.connection, station.broker).then(answers.append)
    assert not answers
    groups_partition(station).fail(BrokerError(ErrorCode.KAFKA_STORAGE_ERROR))
    station.broker.load_some()
    assert [answer.error_code for answer in answers] == [ErrorCode.NOT_COORDINATOR]


# Loads that fail


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO])
def test_after_a_failed_read_the_next_request_tries_again(station, number, monkeypatch):
    assert commit(station, "g", "t", 5) == 0
    partition = groups_partition(station)
    afresh(station)
    judged = []
    monkeypatch.setattr(type(partition.log), "storage_error", lambda self, error: judged.append(error.errno))
    with monkeypatch.context() as broken:

        def fails(*arguments, **options):
            raise OSError(number, "no")

        broken.setattr(type(partition.log), "read", fails)
        assert commit(station, "g", "t", 6) == ErrorCode.NOT_COORDINATOR
        assert commit(station, "g", "t", 6) == ErrorCode.NOT_COORDINATOR
    assert judged == [number, number]
    assert committed(station, "g", "t") == 5
    assert station.broker.coordination.groups.loading == 0


def test_a_read_that_fails_in_a_later_turn_does_not_leave_it_loading(station, monkeypatch):
    assert commit(station, "g", "t", 5) == 0
    partition = groups_partition(station)
    pad(station, partition)
    afresh(station)
    first = []
    station.broker.coordination.groups.submit(partition.index, None, first.append)
    assert first[0].code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    with monkeypatch.context() as broken:

        def fails(*arguments, **options):
            raise OSError(errno.EMFILE, "no")

        broken.setattr(type(partition.log), "read", fails)
        station.settle()
    assert station.broker.coordination.groups.loading == 0
    assert committed(station, "g", "t") == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert committed(station, "g", "t") == 5


@pytest.mark.parametrize("key", [b"\x00", b"\x00\x01\xff", b"\x00\x01\x00\x01g"])
def test_a_record_that_cannot_be_decoded_is_reported_and_leaves_nobody_waiting(station, key):
    """As in Kafka the coordinator serves nobody then; the log is looked at again after a while."""
    assert commit(station, "g", "t", 5) == 0
    partition = groups_partition(station)
    put(station, partition, key)
    afresh(station)
    assert commit(station, "g", "t", 6) == ErrorCode.NOT_COORDINATOR
    assert committed(station, "g", "t") == ErrorCode.NOT_COORDINATOR
    assert len(station.reports) == 1, "the log was not read again at once"
    assert f"{OFFSETS.name}-{partition.index}" in station.reports[0]
    assert "offset 1" in station.reports[0]
    station.broker.load_some()
    partition.log.raise_start_offset(2)  # an operator deletes the record
    station.settle(11_000)
    assert commit(station, "g", "t", 6) == 0
    assert committed(station, "g", "t") == 6


def test_a_log_that_cannot_be_read_does_not_keep_the_next_from_its_turn(station):
    for partition in (0, 1):
        put(
            station,
            station.table.by_name(OFFSETS.name, partition),
            b"\x00" if partition == 0 else UNKNOWN_KIND,
        )
    afresh(station)
    while station.broker.load_some():
        pass
    assert len(station.broker.coordination.groups.machines) == 1


@pytest.mark.parametrize("error", [RuntimeError("unforeseen"), BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR)])
@pytest.mark.parametrize("steps", [0, 10], ids=["at once", "in a later turn"])
def test_a_coordinator_that_breaks_as_it_begins_to_lead_serves_nobody_and_tries_again(
    station, monkeypatch, steps, error
):
    """It would serve, though the transaction whose end was decided before never ends."""
    writer = Writer(station)
    assert writer.add("t") == [0]
    assert writer.write("t") == 0
    index = partition_of("tx", 2)
    known = station.broker.transactions.machines.machine(index).transactions["tx"]
    decided = known.prepared(
        committed=True, epoch=writer.epoch, next_producer_id=-1, client_version=0, now=station.clock.ms
    )
    put(station, station.table.by_name(TRANSACTIONS.name, index), *record_of("tx", decided, 1).encode())
    afresh(station)
    machines = station.broker.transactions.machines
    monkeypatch.setattr(HostedTransactions, "tidy", lambda self: iter([Decision(None)] * steps))
    with monkeypatch.context() as broken:

        def breaks(self, now):
            raise error

        broken.setattr(HostedTransactions, "lead", breaks)
        station.broker.load_some()
        station.settle()
        assert machines.machine(index) is None
        assert machines.loading == 0
        assert len(station.reports) == 1
        assert repr(error) in station.reports[0]
        refused = []
        machines.submit(index, None, refused.append)
        assert [each.code for each in refused] == [ErrorCode.NOT_COORDINATOR]
    station.settle(11_000)
    assert station.broker.load_some()
    station.settle()
    assert machines.machine(index).transactions["tx"].state is State.COMPLETE_COMMIT
    assert station.table.by_name("t", 0).log.first_unstable_offset is None


# A watermark that stands still


@pytest.fixture
def stuck(station):
    """A coordinator of two groups whose partition has lost touch with its followers, and how to go on."""
    name = next(
        f"g{number}" for number in range(100) if partition_of(f"g{number}", 2) == partition_of("g", 2)
    )
    assert commit(station, "g", "t", 5) == 0
    assert commit(station, name, "t", 7) == 0
    partition = groups_partition(station)
    at_once = partition._flusher
    partition._flusher = SimpleNamespace(appended=lambda _: None)

    def go_on():
        partition._flusher = at_once
        at_once.appended(partition)

    return SimpleNamespace(partition=partition, other=name, go_on=go_on)


def commit_later(station, group, offset, **fields):
    request_type = offset_commit.API.request
    topics = request_type.OffsetCommitRequestTopic
    part = topics.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = request_type(group_id=group, topics=[topics(name="t", partitions=[part])], **fields)
    answers = []
    pending = offset_commit.API.handle(request, 8, station.connection, station.broker)
    pending.then(lambda answer: answers.append(answer.topics[0].partitions[0].error_code))
    station.settle()
    return answers


def test_a_commit_that_is_not_committed_in_time_is_refused_and_may_count_later(station, stuck):
    answers = commit_later(station, "g", 6)
    station.settle(4_900)
    assert answers == []
    second = commit_later(station, "g", 8)
    station.settle(200)
    assert answers == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert second == []
    station.settle(4_900)
    assert second == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    stuck.go_on()
    assert committed(station, "g", "t") == 8
    afresh(station)
    assert committed(station, "g", "t") == 8
    assert answers + second == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2


def test_what_needs_no_record_passes(station, stuck):
    answers = commit_later(station, "g", 6)
    refused = commit_later(station, "g", 9, generation_id_or_member_epoch=3, member_id="m")
    assert refused == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert committed(station, stuck.other, "t") == 7
    listed = station.ask(list_groups.API, ListGroupsRequest(), 5)
    assert sorted(group.group_id for group in listed.groups) == ["g", stuck.other]
    assert answers == []
    stuck.go_on()
    assert answers == [0]


def test_an_offset_that_is_not_committed_is_not_told(station, stuck):
    commit_later(station, "g", 6)
    found = []
    asked = offset_fetch.API.request.OffsetFetchRequestGroup
    request = offset_fetch.API.request(groups=[asked(group_id="g", topics=None)])
    pending = offset_fetch.API.handle(request, 9, station.connection, station.broker)
    pending.then(lambda answer: found.append(answer.groups[0].error_code))
    assert found == []
    station.settle(5_100)
    assert found == [ErrorCode.NOT_COORDINATOR], "what Kafka says to consumers of all versions"


def test_who_joins_while_nothing_is_committed_is_refused_in_time(station, stuck):
    station.connection.session = SimpleNamespace(client_id=b"c")
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[protocol],
    )
    commit_later(station, "g", 6)
    answers = []
    join_group.API.handle(request, 3, station.connection, station.broker).then(answers.append)
    station.settle(5_100)
    assert [answer.error_code for answer in answers] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]


def test_transactions_answer_before_those_who_ask_give_up(station):
    Writer(station)
    partition = station.table.by_name(TRANSACTIONS.name, partition_of("tx", 2))
    at_once, partition._flusher = partition._flusher, SimpleNamespace(appended=lambda _: None)
    answers = []
    request = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000)
    pending = init_producer_id.API.handle(request, 4, station.connection, station.broker)
    pending.then(lambda answer: answers.append(answer.error_code))
    station.settle(19_900)
    assert answers == []
    station.settle(200)
    assert answers == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    partition._flusher = at_once
    at_once.appended(partition)
    assert Writer(station).epoch == 2


def _commit_offset(station):
    topics = OffsetCommitRequest.OffsetCommitRequestTopic
    part = topics.OffsetCommitRequestPartition(partition_index=0, committed_offset=6)
    request = OffsetCommitRequest(group_id="g", topics=[topics(name="t", partitions=[part])])
    pending = offset_commit.API.handle(request, 8, station.connection, station.broker)
    return pending, lambda answer: answer.topics[0].partitions[0].error_code


def _begin_transactional_id(station):
    request = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000)
    pending = init_producer_id.API.handle(request, 4, station.connection, station.broker)
    return pending, lambda answer: answer.error_code


def _initialize_share_state(station):
    data = InitializeShareGroupStateRequest.InitializeStateData
    topic_id = station.broker.image.topics.by_name["t"].id
    request = InitializeShareGroupStateRequest(
        group_id="g",
        topics=[data(topic_id=topic_id, partitions=[data.PartitionData(partition=0, state_epoch=1, start_offset=0)])],
    )
    pending = initialize_share_group_state.API.handle(request, 0, station.connection, station.broker)
    return pending, lambda answer: answer.results[0].partitions[0].error_code


@pytest.mark.parametrize(
    ("setting", "value", "waits_ms", "topic", "ask"),
    [
        ("offsets.commit.timeout.ms", "1700", 1700, OFFSETS, _commit_offset),
        ("offsets.commit.timeout.ms", "23000", 23_000, OFFSETS, _commit_offset),
        ("request.timeout.ms", "1800", 1200, TRANSACTIONS, _begin_transactional_id),
        ("request.timeout.ms", "90000", 60_000, TRANSACTIONS, _begin_transactional_id),
        ("share.coordinator.write.timeout.ms", "1900", 1900, SHARE_STATE, _initialize_share_state),
        ("share.coordinator.write.timeout.ms", "24000", 24_000, SHARE_STATE, _initialize_share_state),
    ],
)
def test_a_reply_that_waits_for_its_records_waits_as_long_as_the_settings_say(
    make_station, setting, value, waits_ms, topic, ask
):
    """Nothing is committed, and each coordinator's own write timeout refuses whoever waits: no constant does."""
    partitions = {
        f"{prefix}.num.partitions": "1"
        for prefix in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
    }
    one_replica = {f"share.coordinator.state.topic.{name}": "1" for name in ("replication.factor", "min.isr")}
    station = make_station(**partitions, **one_replica, **{setting: value})
    for each in (OFFSETS, TRANSACTIONS, SHARE_STATE):
        make(station.broker, each, lambda code: None)
    station.settle()
    station.create("t")
    assert commit(station, "g", "t", 5) == 0
    station.table.by_name(topic.name, 0)._flusher = SimpleNamespace(appended=lambda _: None)
    pending, code_of = ask(station)
    answers = []
    pending.then(answers.append)
    station.settle()
    station.settle(waits_ms - 10)
    assert answers == []
    station.settle(20)
    assert [code_of(answer) for answer in answers] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]


def test_a_machine_that_breaks_over_a_record_is_read_anew(station, monkeypatch):
    afresh(station)
    assert commit(station, "g", "t", 5) == 0
    with monkeypatch.context() as broken:

        def breaks(self, offset, record):
            raise RuntimeError("unforeseen")

        broken.setattr(Groups, "apply", breaks)
        assert commit(station, "g", "t", 6) == ErrorCode.NOT_COORDINATOR
    assert "unforeseen" in station.reports[-1]
    assert committed(station, "g", "t") == 6, "it is in the log, and so it counts"


def test_a_machine_that_breaks_over_a_marker_is_read_anew(station, monkeypatch):
    afresh(station)
    writer = Writer(station)
    assert writer.add(OFFSETS.name) == [0]
    index = partition_of("g", 2)
    assert commit(station, "g", "t", 5) == 0
    with monkeypatch.context() as broken:

        def breaks(self, producer_id, committed):
            raise RuntimeError("unforeseen")

        broken.setattr(Groups, "end_transaction", breaks)
        marker = Marker(writer.id, writer.epoch, 0, committed=True)
        codes = []
        station.broker.transactions.markers.write(OFFSETS.name, index, marker, codes.append)
        assert codes == [ErrorCode.NONE], "the marker is written all the same"
    assert committed(station, "g", "t") == 5


def test_a_commit_without_records_waits_no_longer_than_others(station):
    """It waits for an earlier one of its group, whose time was up already."""
    assert commit(station, "g", "t", 5) == 0
    partition = groups_partition(station)
    partition._flusher = SimpleNamespace(appended=lambda partition: None, flush=lambda partition: None)
    groups, answers = station.broker.coordination.groups, []
    request = OffsetCommitRequest(
        group_id="g", topics=[Committed(name="t", partitions=[Committed.OffsetCommitRequestPartition()])]
    )
    for topic in ("t", "nope"):
        request.topics[0].name = topic
        offset_commit.API.handle(request, 8, station.connection, station.broker).then(answers.append)
        station.settle()
        station.settle(10_000)
    codes = [answer.topics[0].partitions[0].error_code for answer in answers]
    assert codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    assert groups.loading == 0


def test_the_end_of_a_transaction_is_recorded_though_its_log_broke_once(station, monkeypatch):
    afresh(station)
    writer = Writer(station)
    assert writer.add("t") == [0]
    assert writer.write("t") == 0
    append, appends = Partition.append_own, []

    def breaks(self, *arguments, **how):
        if self.topic == TRANSACTIONS.name:
            appends.append(1)
            if len(appends) == 2:  # after that of the decision
                raise OSError(errno.EMFILE, "no")
        return append(self, *arguments, **how)

    monkeypatch.setattr(Partition, "append_own", breaks)
    assert writer.end(committed=True) == 0
    assert "OSError(24, 'no')" in station.reports[-1]
    station.settle(1_000)
    assert len(appends) == 3
    assert writer.add("t") == [0]


def test_a_decision_that_breaks_is_answered_and_reported(station):
    """Whoever is called back later has nobody above to answer its client."""
    afresh(station)
    assert commit(station, "g", "t", 5) == 0
    groups, outcomes, reports = station.broker.coordination.groups, [], len(station.reports)

    def breaks(machine, now):
        raise RuntimeError("unforeseen")

    groups.submit(partition_of("g", 2), breaks, outcomes.append, ("g",))
    groups.gather(partition_of("g", 2), breaks, outcomes.append, ("g",))
    station.settle()
    assert [outcome.code for outcome in outcomes] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    assert ["unforeseen" in report for report in station.reports[reports:]] == [True] * 2
    assert committed(station, "g", "t") == 5


@pytest.mark.parametrize("what", ["step", "append"])
def test_long_work_that_breaks_is_reported_and_over(station, monkeypatch, what):
    afresh(station)
    assert commit(station, "g", "t", 5) == 0
    groups, begun, reports = station.broker.coordination.groups, [], len(station.reports)

    def begin(machine):
        begun.append(machine)
        return steps()

    def steps():
        if what == "step":
            raise RuntimeError("unforeseen")
        yield Decision(None, (tombstone(Place("g", "t", 1)),))

    def breaks(*arguments, **how):
        raise RuntimeError("unforeseen")

    with monkeypatch.context() as broken:
        if what == "append":
            broken.setattr(Partition, "append_own", breaks)
        groups.tell_all(begin)
        station.settle()
    station.settle(5_000)
    assert len(begun) == len(groups.machines), "it is not begun again"
    assert ["unforeseen" in report for report in station.reports[reports:]] == [True] * len(begun)
    assert committed(station, "g", "t") == 5


def test_a_timer_that_breaks_is_reported_and_tried_again(station, monkeypatch):
    afresh(station)
    assert commit(station, "g", "t", 5) == 0
    machine = station.broker.coordination.groups.machine(partition_of("g", 2))
    expire, calls = Groups.expire, []

    def breaks(self, now):
        calls.append(now)
        if len(calls) == 1:
            raise RuntimeError("unforeseen")
        return expire(self, now)

    monkeypatch.setattr(Groups, "expire", breaks)
    station.settle(machine.deadline - station.clock.ms + 1)
    assert "unforeseen" in station.reports[-1]
    station.settle(1_100)
    assert len(calls) > 1


def test_a_listener_that_breaks_keeps_no_marker_from_being_reported(station, monkeypatch):
    afresh(station)
    writer, codes = Writer(station), []

    def breaks(*arguments):
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(station.broker.coordination.groups, "transaction_ended", breaks)
    marker = Marker(writer.id, writer.epoch, 0, committed=True)
    station.broker.transactions.markers.write(OFFSETS.name, 0, marker, codes.append)
    assert codes == [ErrorCode.NONE]
    assert "unforeseen" in station.reports[-1]
