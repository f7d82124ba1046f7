"""The page about groups, transactions and share groups: names that dashboards ask for, and numbers that are true."""

import math

import pytest

from ottla.broker.dispatch import Dispatcher
from ottla.broker.internal_topics import OFFSETS, SHARE_STATE, TRANSACTIONS, make
from ottla.broker.metrics.page import Page
from ottla.broker.share_coordination import ShareCoordination
from ottla.broker.timing import Timing
from ottla.http.metrics.text import gauge, page_pieces
from ottla.wire.errors import ErrorCode
from tests.unit.broker.test_coordinators import Writer
from tests.unit.broker.test_metrics_page import read
from tests.unit.broker.test_share_groups import ACCEPT, LOCK_MS, REJECT, RELEASE, Member, configure
from tests.unit.broker.test_topic_deletion import commit, delete

GROUPS = "kafka_server_group_coordinator_metrics_"
MANAGER = "kafka_coordinator_group_groupmetadatamanager_"
SHARE = "kafka_server_sharegroupmetrics_"
TOPICS = "kafka_server_brokertopicmetrics_"

# What Strimzi's exporter dashboard and Grafana's 7589 query of groups.
ASKED_FOR = [
    "kafka_consumergroup_current_offset",
    "kafka_consumergroup_current_offset_sum",
    "kafka_consumergroup_lag",
    "kafka_consumergroup_lag_sum",
    "kafka_consumergroup_members",
]


@pytest.fixture
def busy(make_station):
    station = make_station(**{"offsets.topic.num.partitions": "3"})
    for topic in (OFFSETS, TRANSACTIONS, SHARE_STATE):
        make(station.broker, topic, lambda code: None)
    station.settle()
    station.create("t", 2)
    for index in range(2):
        station.table.by_name("t", index)  # awake
    return station


@pytest.fixture
def page(busy):
    dispatcher = Dispatcher((), busy.broker, busy.reports.append)
    return Page(busy.broker, dispatcher, busy.disk, ["PLAINTEXT"], "1.2.3")


def test_offsets_and_lag_of_groups(busy, page):
    busy.produce("t", 0, count=7)
    commit(busy, "g", 5, "t", partitions=2)
    samples = read(page)
    assert [name for name in ASKED_FOR if not any(key.startswith(name + "{") for key in samples)] == []
    at = '{consumergroup="g",topic="t",partition="0"}'
    assert samples[f"kafka_consumergroup_current_offset{at}"] == 5
    assert samples[f"kafka_consumergroup_lag{at}"] == 2
    beyond = '{consumergroup="g",topic="t",partition="1"}'
    assert samples[f"kafka_consumergroup_lag{beyond}"] == 0, "the group is ahead of what is there"
    assert samples['kafka_consumergroup_current_offset_sum{consumergroup="g",topic="t"}'] == 10
    assert samples['kafka_consumergroup_lag_sum{consumergroup="g",topic="t"}'] == 2
    assert samples['kafka_consumergroup_members{consumergroup="g"}'] == 0
    assert samples[MANAGER + "numoffsets"] == 2
    assert samples[GROUPS + "offset_commit_count"] == 2


def test_no_sum_is_told_of_which_a_part_is_unknown(busy, page):
    commit(busy, "g", 5, "t", partitions=2)
    busy.table.partitions[("t", 1)].error = ErrorCode.KAFKA_STORAGE_ERROR
    samples = read(page)
    assert 'kafka_consumergroup_lag{consumergroup="g",topic="t",partition="0"}' in samples
    assert 'kafka_consumergroup_lag{consumergroup="g",topic="t",partition="1"}' not in samples
    assert 'kafka_consumergroup_lag_sum{consumergroup="g",topic="t"}' not in samples
    assert samples['kafka_consumergroup_current_offset_sum{consumergroup="g",topic="t"}'] == 10


def test_groups_by_protocol_and_state(busy, page):
    commit(busy, "g", 5, "t")
    commit(busy, "h", 5, "t")
    Member(busy, "m1", "s").join("t")
    samples = read(page)
    assert samples[GROUPS + 'group_count{protocol="classic"}'] == 2
    assert samples[GROUPS + 'group_count{protocol="share"}'] == 1
    assert samples[GROUPS + 'group_count{protocol="consumer"}'] == 0
    assert samples[MANAGER + "numgroups"] == samples[MANAGER + "numgroupsempty"] == 2
    assert samples[MANAGER + "numgroupspreparingrebalance"] == 0
    assert samples[GROUPS + 'share_group_count{state="Stable"}'] == 1
    assert samples[GROUPS + 'streams_group_count{state="NotReady"}'] == 0
    assert samples['kafka_consumergroup_members{consumergroup="s"}'] == 1
    assert samples[GROUPS + "share_group_rebalance_count"] == 2, (
        "for the member, and for the state it waited for"
    )
    assert 1 <= samples[GROUPS + 'num_partitions{state="active"}'] <= 3
    assert samples[GROUPS + 'num_partitions{state="loading"}'] == 0
    assert samples[GROUPS + "partition_load_time_max"] == 0
    assert math.isnan(read(page)[GROUPS + "partition_load_time_max"]), "nothing since the page before"


def test_what_a_log_holds_is_not_counted_as_done_again(busy, page):
    Member(busy, "m1", "s").join("t")
    tally = busy.broker.coordination.tally
    before = dict(tally.rebalances)
    busy.broker.coordination.groups._seats.clear()
    while busy.broker.load_some():
        pass
    assert read(page)[GROUPS + 'group_count{protocol="share"}'] == 1
    assert tally.rebalances == before


def test_a_page_looks_at_each_group_once_and_pauses_on_the_way(busy, page, monkeypatch):
    commit(busy, "g", 1, "t")
    groups = [f"g{number}" for number in range(900)]
    for group in groups:
        commit(busy, group, 1, "t")
    looks = []
    offsets = type(busy.broker.coordination.groups.machines[0].offsets)
    committed = offsets.committed
    monkeypatch.setattr(
        offsets, "committed", lambda self, group: looks.append(group) or committed(self, group)
    )
    pieces = list(page())
    assert sorted(looks) == sorted(["g", *groups])
    assert pieces.count(b"") >= 900 // 200
    assert b"".join(pieces).count(b"kafka_consumergroup_lag{") == 901


def test_groups_may_come_and_go_while_a_page_is_made(busy, page):
    for group in ("a", "b", "c"):
        commit(busy, group, 1, "t")
    for number, piece in enumerate(page()):
        assert number < 3_000, "a page without end"
        if not piece:
            commit(busy, f"new-{number}", 1, "t")
            for machine in busy.broker.coordination.groups.machines:
                machine.shelf.groups.pop("b", None)


def test_long_families_come_in_pieces():
    family = gauge("many", "Many.")
    for number in range(5_000):
        family.add(number, n=number)
    pieces = list(page_pieces([family, None]))
    assert len(pieces) == 4
    assert pieces[-1] == b""
    assert b"".join(pieces).count(b"\n") == 5_002


def test_transactions_by_state(busy, page):
    writer = Writer(busy)
    assert writer.add("t") == [0]
    samples = read(page)
    assert samples['ottla_transactional_ids{state="Ongoing"}'] == 1
    assert samples["kafka_server_transaction_coordinator_metrics_partition_load_time_max"] == 0
    assert writer.write("t") == 0
    assert writer.end(committed=True) == 0
    samples = read(page)
    assert samples['ottla_transactional_ids{state="Ongoing"}'] == 0
    assert samples['ottla_transactional_ids{state="CompleteCommit"}'] == 1


def test_markers_that_wait_are_counted(busy, page):
    name = "kafka_coordinator_transaction_transactionmarkerchannelmanager_unknowndestinationqueuesize"
    writer = Writer(busy)
    assert writer.add("t") == [0]
    assert writer.write("t") == 0
    partition = busy.table.by_name("t", 0)
    append, partition.__class__ = partition.append_own, type("Stuck", (type(partition),), {"__slots__": ()})
    try:
        type(partition).append_own = lambda self, *args: append(bytearray(b""), 0)
        assert writer.end(committed=True) == 0
        assert read(page)[name] == 1
    finally:
        del type(partition).append_own
    busy.settle(10_000)
    assert read(page)[name] == 0


def test_share_groups(busy, page):
    configure(busy, "g", "share.auto.offset.reset", "earliest")
    configure(busy, "g", "errors.deadletterqueue.topic.name", "dlq.g")
    busy.create("dlq.g", errors_deadletterqueue_group_enable="true")
    busy.produce("t", 0, count=6)
    member = Member(busy).join("t")
    assert member.take() == [(0, 5, 1)]
    assert member.acknowledge(0, 3, ACCEPT, ACCEPT, REJECT, RELEASE) == 0
    at = '{group="g",topic="t",partition="0"}'
    samples = read(page)
    assert samples[SHARE + 'recordacknowledgements_total{ackType="Accept"}'] == 2
    assert samples[SHARE + 'recordacknowledgements_total{ackType="Reject"}'] == 1
    assert samples[SHARE + 'recordacknowledgements_total{ackType="Renew"}'] == 0
    assert samples[SHARE + 'deadletterqueuerecordcount_count{group="g"}'] == 1
    assert samples[SHARE + 'deadletterqueuetotalproducerequests_total{group="g"}'] == 1
    assert samples[SHARE + 'deadletterqueuefailedproducerequests_total{group="g"}'] == 0
    assert samples[SHARE + "partitionloadtimems_count"] == 2
    assert samples[f"kafka_server_sharepartitionmetrics_inflightmessagecount{at}"] == 3
    assert samples[f"kafka_server_sharepartitionmetrics_acquisitionlocktimeout_total{at}"] == 0
    assert samples["kafka_server_sharesessioncache_sharesessionscount"] == 1
    assert samples["kafka_server_sharesessioncache_sharepartitionscount"] == 2
    assert samples["kafka_server_share_coordinator_metrics_write_total"] >= 2
    assert samples[f"ottla_share_group_lag{at}"] == 3
    busy.settle(LOCK_MS)
    samples = read(page)
    assert samples[f"kafka_server_sharepartitionmetrics_acquisitionlocktimeout_total{at}"] == 2


def test_share_traffic_by_topic_never_falls_over_all(busy, page):
    configure(busy, "g", "share.auto.offset.reset", "earliest")
    busy.produce("t", 0, count=2)
    member = Member(busy).join("t")
    assert member.take() == [(0, 1, 1)]
    assert member.acknowledge(0, 0, ACCEPT) == 0
    assert member.acknowledge(0, 0, ACCEPT) == 0, "it is below the start by now"
    assert member.acknowledge(5, 5, ACCEPT) != 0
    samples = read(page)
    expected = {
        "totalsharefetchrequests_total": 1,
        "failedsharefetchrequests_total": 0,
        "totalshareacknowledgementrequests_total": 3,
        "failedshareacknowledgementrequests_total": 1,
    }
    for name, count in expected.items():
        assert samples[TOPICS + name] == samples[TOPICS + name + '{topic="t"}'] == count, name
    delete(busy, "t")
    samples = read(page)
    for name, count in expected.items():
        assert samples[TOPICS + name] == count, name
        assert TOPICS + name + '{topic="t"}' not in samples


def test_a_broker_without_groups_has_a_page(station):
    station.broker.share = ShareCoordination(station.broker)
    page = Page(station.broker, Dispatcher((), station.broker, print), station.disk, ["PLAINTEXT"], "1.2.3")
    samples = read(page)
    assert samples[GROUPS + 'group_count{protocol="classic"}'] == 0
    assert samples[TOPICS + "totalsharefetchrequests_total"] == 0


def test_a_timing_begins_anew_with_each_look():
    timing = Timing()
    assert all(math.isnan(each) for each in timing.look())
    timing.took(0.001)
    timing.took(0.003)
    assert timing.look() == (2.0, 3.0)
    assert all(math.isnan(each) for each in timing.look())
    assert timing.count == 2
