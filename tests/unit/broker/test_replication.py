"""A leader and its followers: brokers in memory that fetch from each other through the real handlers."""

import itertools
from types import SimpleNamespace

import pytest

from ottla.broker import fetcher
from ottla.broker.api import Pending
from ottla.broker.apis import fetch, list_offsets, offset_for_leader_epoch, produce
from ottla.broker.fetch_session import FetchSessions
from ottla.broker.following import Fetchers
from ottla.channel.connections import Connections
from ottla.log.config import LogConfig
from ottla.log.directory import LogDirectory
from ottla.log.identity import Identity
from ottla.metadata.fold import Fold
from ottla.metadata.image import EMPTY
from ottla.partition.copy import cut_to
from ottla.partition.roles import Roles
from ottla.partition.table import PartitionTable
from ottla.wire.batch import build_batch, scan
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.fetch import FetchResponse
from ottla.wire.messages.list_offsets import ListOffsetsResponse
from ottla.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from ottla.wire.messages.produce import ProduceRequest
from ottla.wire.record import Record
from ottla.wire.records.metadata import (
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from ottla.world.disk import RealDisk
from ottla.world.entropy import SeededEntropy
from tests.unit.broker.conftest import AtOnce, StillClock, StillTimers

TOPIC = bytes([7]) * 16
SETTINGS = {
    "replica.lag.time.max.ms": 30_000,
    "replica.fetch.max.bytes": 1 << 20,
    "replica.fetch.wait.max.ms": 500,
    "replica.fetch.min.bytes": 1,
    "replica.fetch.response.max.bytes": 10 << 20,
    "replica.fetch.backoff.ms": 1000,
    "replication.quota.window.num": 11,
    "replication.quota.window.size.seconds": 1,
}
API_OF = {fetch.API.request: fetch.API, list_offsets.API.request: list_offsets.API}


class Wire:
    """A peer that is asked by calling its handler; it may be cut."""

    def __init__(self, cluster, leader):
        self.cluster, self.leader = cluster, leader

    def ask(self, request, response, answered):
        self.cluster.requests.append(request)
        if self.leader in self.cluster.cut:
            self.cluster.timers.call_soon(lambda: answered(ConnectionError("cut")))
            return
        api = API_OF[type(request)]
        version = api.versions[-1]
        node = self.cluster.nodes[self.leader]
        request = api.request.decode(request.encode(version), version)
        reply = api.handle(request, version, node.connection, node.broker)

        def send(message, _=0):
            data = message.encode(version)
            self.cluster.timers.call_soon(lambda: answered(response.decode(data, version)))
            return []

        if isinstance(reply, Pending):
            reply.attach(
                SimpleNamespace(owe=lambda _: None, settle=lambda *_: None),
                SimpleNamespace(now=lambda: 0.0),
                SimpleNamespace(parts=send, took=lambda _: None),
                0,
                0.0,
            )
        else:
            send(reply)

    def close(self):
        pass


class NodeOfTests:
    """One broker's table, roles and fetchers."""

    def __init__(self, cluster, id, path):
        self.id = id
        entropy = SeededEntropy(id)
        directory = LogDirectory(str(path / str(id)), RealDisk(), entropy, cluster.reports.append)
        directory.format(Identity("cluster", id, entropy.uuid()))
        directory.open()
        directory.load(lambda topic: LogConfig())
        self.directory = directory
        self.roles = Roles(id, cluster.clock.now_ms, lambda: SETTINGS)
        self.roles.broker_epoch = 100 + id
        self.table = PartitionTable(
            id, [directory], AtOnce(), lambda overrides: {"min.insync.replicas": 2}, entropy.uuid, self.roles
        )
        fetchers = Fetchers(
            id,
            lambda: self.roles.broker_epoch,
            lambda leader: Wire(cluster, leader),
            cluster.timers,
            lambda: SETTINGS,
            cluster.reports.append,
            self.roles.throttles.taking,
        )
        self.roles.attach(fetchers, cluster)
        self.connections = Connections(
            frame_bytes_max=1 << 20, total_max=9, per_address_max=9, call_soon=cluster.timers.call_soon
        )
        self.broker = SimpleNamespace(
            table=self.table,
            clock=cluster.clock,
            fetch_sessions=FetchSessions(10, entropy.below),
            fetch_bytes_max=50 << 20,
            call_later=cluster.timers.call_later,
            call_soon=cluster.timers.call_soon,
            connections=self.connections,
            settings={},
            image=EMPTY,
            endpoints=lambda listener: [],
        )
        self.connection = SimpleNamespace(
            on_close=[],
            listener="PLAINTEXT",
            session=SimpleNamespace(client_id=b""),
            closed=False,
            held=0,
            is_corked=False,
        )

    @property
    def partition(self):
        return self.table.by_name("t", 0)

    @property
    def data(self):
        log = self.partition.log
        return (
            bytes(log.read(log.start_offset, 1 << 20, log.end_offset))
            if log.end_offset > log.start_offset
            else b""
        )


class Cluster:
    """Three brokers and the metadata that they are told."""

    def __init__(self, path):
        self.clock = StillClock()
        self.timers = StillTimers(self.clock)
        self.reports, self.requests, self.cut, self.proposals = [], [], set(), []
        self.fold = Fold(EMPTY)
        self.offset = 0
        self.nodes = {id: NodeOfTests(self, id, path) for id in (1, 2, 3)}
        self.tell(
            *(
                RegisterBrokerRecord(
                    broker_id=id, broker_epoch=100 + id, fenced=False, incarnation_id=bytes(16)
                )
                for id in self.nodes
            ),
            TopicRecord(name="t", topic_id=TOPIC),
            PartitionRecord(
                partition_id=0,
                topic_id=TOPIC,
                replicas=[1, 2, 3],
                isr=[1, 2, 3],
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
                directories=[bytes(16)] * 3,
            ),
        )
        self.settle()

    def tell(self, *records, to=(1, 2, 3)):
        for record in records:
            self.fold.apply(self.offset, record)
            self.offset += 1
        self.fold.advance(self.offset, 1, self.clock.ms)
        self.changes = self.fold.settle()
        for id in to:
            for change in self.changes:
                self.nodes[id].table.apply(change.delta, change.image)

    def elect(self, leader, isr, to=(1, 2, 3)):
        self.tell(PartitionChangeRecord(partition_id=0, topic_id=TOPIC, leader=leader, isr=isr), to=to)

    def propose(self, partition, proposal):
        self.proposals.append((partition, proposal))

    def settle(self, ms=0):
        self.clock.ms += ms
        self.timers.run()

    def produce(self, *values, node=1, acks=-1, timeout_ms=5000):
        batch = build_batch([Record(n, self.clock.ms, b"k", value, ()) for n, value in enumerate(values)])
        data = ProduceRequest.TopicProduceData
        place = data.PartitionProduceData(index=0, records=memoryview(batch))
        request = ProduceRequest(
            acks=acks, timeout_ms=timeout_ms, topic_data=[data(topic_id=TOPIC, partition_data=[place])]
        )
        there = self.nodes[node]
        reply = produce.handle(request, 13, there.connection, there.broker)
        if isinstance(reply, Pending):
            self.settle()
            reply = reply._message
        return None if reply is None else reply.responses[0].partition_responses[0]

    def watermarks(self):
        return [node.partition.high_watermark for node in self.nodes.values()]


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    yield made
    for node in made.nodes.values():
        node.directory.close(clean=False)


def test_a_record_reaches_all_and_is_acknowledged_then(cluster):
    answer = cluster.produce(b"one", b"two")
    assert (answer.error_code, answer.base_offset) == (0, 0)
    assert cluster.nodes[1].data == cluster.nodes[2].data == cluster.nodes[3].data != b""
    assert cluster.watermarks() == [2, 2, 2]


def test_what_a_follower_has_not_synced_is_not_said_to_be_there(cluster, monkeypatch):
    slow = cluster.nodes[3].partition
    held = []
    monkeypatch.setattr(AtOnce, "appended", _held_for(slow, held, AtOnce.appended))
    assert cluster.produce(b"x") is None
    assert slow.log.end_offset == 1
    assert cluster.nodes[1].partition.high_watermark == 0
    cluster.settle(500)
    assert cluster.nodes[1].partition.high_watermark == 0
    held.pop()()
    cluster.settle()
    assert cluster.watermarks()[0] == 1
    monkeypatch.undo()
    assert cluster.produce(b"y").error_code == 0


@pytest.mark.parametrize("leader", [1, 2])
def test_what_was_stored_in_an_earlier_epoch_is_not_said_to_be_there_before_it_is_synced(
    cluster, monkeypatch, leader
):
    slow = cluster.nodes[3].partition
    held = []
    monkeypatch.setattr(AtOnce, "appended", _held_for(slow, held, AtOnce.appended))
    assert cluster.produce(b"x") is None
    cluster.elect(leader, [leader, 3])
    cluster.settle(500)
    assert (slow.log.end_offset, slow.durable_offset) == (1, 0)
    assert cluster.nodes[leader].partition.high_watermark == 0
    held.pop()()
    cluster.settle()
    assert cluster.nodes[leader].partition.high_watermark == 1
    monkeypatch.undo()
    assert cluster.produce(b"y", node=leader).error_code == 0


def test_a_leader_that_follows_says_what_it_appended_only_once_that_is_synced(cluster, monkeypatch):
    slow = cluster.nodes[1].partition
    held = []
    monkeypatch.setattr(AtOnce, "appended", _held_for(slow, held, AtOnce.appended))
    assert cluster.produce(b"x") is None
    cluster.elect(2, [2, 1])
    cluster.settle(500)
    assert cluster.nodes[2].partition.high_watermark == 0
    held.pop()()
    cluster.settle()
    assert cluster.nodes[2].partition.high_watermark == 1


def _held_for(slow, held, appended):
    def flush(self, partition):
        if partition is slow:
            held.append(lambda: appended(self, partition))
        else:
            appended(self, partition)

    return flush


def test_all_is_not_acknowledged_while_one_in_sync_is_missing(cluster):
    leader = cluster.nodes[1]
    cluster.nodes[3].roles.gone(cluster.nodes[3].partition)  # stops fetching
    cluster.settle()
    assert cluster.produce(b"x") is None
    assert leader.partition.high_watermark == 0
    assert cluster.produce(b"y", acks=1).error_code == 0
    assert cluster.produce(b"z", timeout_ms=0).error_code == ErrorCode.REQUEST_TIMED_OUT


def test_too_few_in_sync_refuse_and_the_rest_waits(cluster):
    cluster.elect(1, [1])
    cluster.settle()
    answer = cluster.produce(b"x")
    assert answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert cluster.produce(b"y", acks=1).error_code == 0
    cluster.settle()
    assert cluster.watermarks()[0] == 0


def test_an_idle_follower_asks_for_nothing_new(cluster):
    cluster.produce(b"x")
    cluster.settle(500)
    cluster.requests.clear()
    cluster.settle(500)
    assert cluster.requests
    assert all(not request.topics and request.session_id for request in cluster.requests)


def test_a_follower_that_comes_back_joins_again(cluster):
    cluster.elect(1, [1, 2])
    cluster.cut = {1}
    cluster.settle(1000)
    cluster.cut = set()
    cluster.produce(b"x", acks=1)
    cluster.settle(1000)
    proposal = next(each for _, each in cluster.proposals if 3 in dict(each.isr))
    assert dict(proposal.isr) == {1: 101, 2: 102, 3: 103}
    cluster.nodes[1].roles.agreed(cluster.nodes[1].partition, proposal, (1, 2, 3), 1, 5)
    assert cluster.nodes[1].partition.leadership.isr == {1, 2, 3}


def test_a_follower_in_another_life_joins_though_it_has_nothing_new_to_tell(cluster):
    cluster.produce(b"x")
    cluster.settle(500)
    registered = RegisterBrokerRecord(broker_id=3, broker_epoch=200, fenced=False, incarnation_id=bytes(16))
    cluster.tell(registered)
    cluster.elect(1, [1, 2])
    cluster.settle(500)
    assert cluster.proposals == []
    cluster.nodes[3].roles.broker_epoch = 200
    cluster.settle(500)
    cluster.settle(500)
    proposal = next(each for _, each in cluster.proposals if 3 in dict(each.isr))
    assert dict(proposal.isr)[3] == 200


def test_a_follower_whose_directory_failed_is_not_asked_back(cluster):
    cluster.produce(b"x")
    place = bytes([9]) * 16
    cluster.tell(
        PartitionChangeRecord(partition_id=0, topic_id=TOPIC, directories=[bytes(16), bytes(16), place]),
        RegisterBrokerRecord(
            broker_id=3, broker_epoch=103, fenced=False, incarnation_id=bytes(16), log_dirs=[bytes([8]) * 16]
        ),
    )
    cluster.elect(1, [1, 2])
    cluster.settle(500)
    assert cluster.proposals == []
    cluster.tell(
        PartitionChangeRecord(
            partition_id=0, topic_id=TOPIC, directories=[bytes(16), bytes(16), bytes([8]) * 16]
        )
    )
    cluster.settle(500)
    assert [3 in dict(each.isr) for _, each in cluster.proposals] == [True]


@pytest.mark.parametrize("side", ["giving", "taking"])
def test_one_that_catches_up_is_slowed_down_and_those_in_sync_are_not(cluster, monkeypatch, side):
    rate = {"giving": "leader", "taking": "follower"}[side]
    monkeypatch.setitem(SETTINGS, f"{rate}.replication.throttled.rate", 1000)
    monkeypatch.setitem(SETTINGS, "replica.fetch.max.bytes", 2000)
    monkeypatch.setitem(SETTINGS, "replica.fetch.response.max.bytes", 2000)
    cluster.nodes[3].roles.gone(cluster.nodes[3].partition)  # which stays away meanwhile
    cluster.settle(500)
    cluster.produce(b"x", acks=1)
    cluster.elect(1, [1, 2], to=(1, 2))
    cluster.settle(500)
    for node in cluster.nodes.values():
        getattr(node.roles.throttles, side).name("t", ["*"])
    for _ in range(20):
        assert cluster.produce(b"v" * 1000).error_code == 0  # by those in sync, at any speed
        cluster.settle(1)
    assert cluster.nodes[2].partition.log.end_offset == 21
    cluster.settle(12_000)  # what those got is out of the windows
    late = cluster.nodes[3]
    late.partition.follow(cluster.nodes[1].partition.leader_epoch)
    late.roles._following.follow(late.partition, 1)
    ends = []
    for _ in range(200):
        cluster.settle(250)
        ends.append(late.partition.log.end_offset)
        if ends[-1] == 21:
            break
    assert ends[-1] == 21
    assert len(ends) * 0.25 > 8, ends  # twenty thousand bytes, of which some are free


def test_a_follower_that_hears_of_its_leader_first_does_not_hold_up_writes(cluster):
    cluster.elect(2, [1, 2, 3], to=(1, 3))
    cluster.settle()
    changes = cluster.changes
    cluster.settle(15)  # meanwhile the followers were refused
    for change in changes:
        cluster.nodes[2].table.apply(change.delta, change.image)
    assert cluster.produce(b"x", node=2) is None
    cluster.settle(30)
    assert cluster.watermarks()[1] == 1


def test_one_that_is_refused_again_and_again_asks_ever_more_seldom(cluster):
    cluster.elect(2, [1, 2, 3], to=(1, 3))
    cluster.settle()
    cluster.requests.clear()
    for _ in range(10_000):
        cluster.settle(1)
    refused = [request for request in cluster.requests if request.topics]
    assert 20 < len(refused) < 50  # three of them, about once a second in the end


def test_a_leader_that_hung_up_is_lost_for_a_while(cluster):
    lost = cluster.nodes[3].roles._following.is_lost
    assert not lost(1)
    cluster.cut = {1}
    cluster.settle(500)
    assert lost(1)
    cluster.cut = set()
    cluster.settle(500)
    cluster.settle(500)  # a fetch that finds nothing waits as long
    assert not lost(1)
    cluster.cut = {1}
    for _ in range(6_000):
        cluster.settle(1)
    assert not lost(1), "a cut between these two says nothing of the leader"


def test_one_who_is_silent_is_proposed_to_leave(cluster):
    cluster.nodes[3].roles.gone(cluster.nodes[3].partition)
    cluster.settle(500)
    cluster.produce(b"x", acks=1)
    cluster.settle(31_000)
    cluster.nodes[1].roles.shrink()
    partition, proposal = cluster.proposals[-1]
    assert dict(proposal.isr) == {1: 101, 2: 102}
    cluster.nodes[1].roles.agreed(partition, proposal, (1, 2), 0, 1)
    assert partition.high_watermark == 1


def test_what_only_an_old_leader_had_is_cut_away(cluster):
    cluster.produce(b"both")
    cluster.cut = {1}
    cluster.settle(500)
    old = cluster.nodes[1]
    cluster.produce(b"lost", acks=1)
    cluster.produce(b"lost too", acks=1)
    assert old.partition.log.end_offset == 3
    cluster.elect(2, [2, 3])
    cluster.cut = set()
    cluster.settle()
    cluster.produce(b"new", node=2)
    cluster.settle(1000)
    assert cluster.nodes[1].data == cluster.nodes[2].data == cluster.nodes[3].data
    assert [batch.partition_leader_epoch for _, batch in scan(cluster.nodes[1].data)] == [0, 1]
    assert cluster.watermarks()[1] == 2


def test_a_follower_whose_watermark_lags_keeps_what_was_committed(cluster):
    """KIP-101: a follower that restarts may not cut to its watermark, for the leader counted what it had."""
    follower = cluster.nodes[2]
    cluster.produce(b"a")
    follower.partition.high_watermark = 0
    cluster.elect(2, [2])
    cluster.settle()
    assert follower.partition.log.end_offset == 1
    cluster.settle(1000)
    assert cluster.nodes[1].data == follower.data != b""


def test_two_quick_elections_do_not_leave_logs_apart(cluster):
    """KIP-279: the leader knows an epoch that the follower does not; they ask until both agree."""
    cluster.produce(b"base")
    cluster.cut = {1, 2, 3}
    cluster.settle(500)
    cluster.produce(b"one by 1", acks=1)
    cluster.elect(2, [2])
    cluster.produce(b"two by 2", node=2, acks=1)
    cluster.produce(b"three by 2", node=2, acks=1)
    cluster.elect(1, [1])
    cluster.produce(b"four by 1", acks=1)
    cluster.elect(3, [3])
    cluster.produce(b"five by 3", node=3, acks=1)
    cluster.cut = set()
    for _ in range(6):
        cluster.settle(1000)
    assert cluster.nodes[1].data == cluster.nodes[2].data == cluster.nodes[3].data
    assert [batch.partition_leader_epoch for _, batch in scan(cluster.nodes[1].data)] == [0, 3]


def test_a_follower_behind_what_the_leader_kept_begins_there(cluster):
    cluster.cut = {1}
    cluster.settle(500)
    cluster.elect(1, [1, 2])
    for _ in range(4):
        cluster.produce(b"x", acks=1)
    leader = cluster.nodes[1].partition
    leader.log.truncate_fully_and_start_at(3)
    cluster.produce(b"y", acks=1)
    cluster.cut = set()
    for _ in range(4):
        cluster.settle(1000)
    assert cluster.nodes[3].partition.log.start_offset == 3
    assert cluster.nodes[3].data == cluster.nodes[1].data


def test_only_the_leader_takes_appends(cluster):
    assert cluster.produce(b"x", node=2).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_whoever_waits_when_the_leadership_goes_is_told(cluster):
    cluster.nodes[3].roles.gone(cluster.nodes[3].partition)
    cluster.settle()
    told = []
    partition = cluster.nodes[1].partition
    assert cluster.produce(b"x") is None
    partition.when_durable(1, told.append)
    cluster.elect(2, [2])
    assert [error.code for error in told] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_a_new_leader_does_not_tell_readers_that_they_have_read_too_much(cluster):
    """It has yet to learn how far its predecessor had committed; a reader that was further is not sent back."""
    cluster.produce(b"one", b"two")
    cluster.nodes[2].partition.high_watermark = 1  # as far as it had heard
    cluster.cut |= {1, 2, 3}  # and hears no more
    cluster.elect(2, [2, 3], to=(2,))
    asked = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    place = asked.OffsetForLeaderPartition(partition=0, current_leader_epoch=1, leader_epoch=0)
    request = OffsetForLeaderEpochRequest(replica_id=-1, topics=[asked(topic="t", partitions=[place])])
    leader = cluster.nodes[2]
    answer = offset_for_leader_epoch.API.handle(request, 4, leader.connection, leader.broker)
    found = answer.topics[0].partitions[0]
    assert leader.partition.high_watermark == 1
    assert (found.error_code, found.leader_epoch, found.end_offset) == (0, 0, 2)


def test_an_empty_follower_ahead_of_an_uncleanly_elected_leader_begins_where_that_one_does(cluster):
    """And asks no more than it has to, and lacks nothing once the leader has grown past where it stood."""
    follower = cluster.nodes[3]
    cluster.cut = {1, 2, 3}
    cluster.settle(500)
    cut_to(follower.partition, 100)
    for n in range(3):
        cluster.nodes[2].partition.log.append(
            build_batch([Record(0, cluster.clock.ms, b"k", b"%d" % n, ())]), 0, cluster.clock.ms
        )
    cluster.cut = set()
    cluster.requests.clear()
    cluster.elect(2, [2])
    cluster.settle(1)
    assert len(cluster.requests) < 40
    for _ in range(6):
        cluster.settle(1000)
    for n in range(110):
        cluster.produce(b"later %d" % n, node=2, acks=1)
    cluster.settle(1000)
    assert follower.partition.log.start_offset == 0
    assert follower.partition.log.end_offset == 113
    assert follower.data == cluster.nodes[2].data


def test_a_follower_that_is_ahead_keeps_what_lies_within_the_leaders_range(cluster):
    """A leader without epochs answers out of range; the follower is cut to its end, and no further."""
    cluster.produce(b"a")
    cluster.produce(b"b")
    followed = cluster.nodes[3].roles._following._fetchers[1]._followed[TOPIC, 0]
    fetcher = cluster.nodes[3].roles._following._fetchers[1]
    followed.rests = True
    fetcher._out_of_range(followed, 1)
    cluster.settle()
    assert cluster.nodes[3].partition.log.end_offset == 1
    assert not followed.rests
    cluster.settle(1000)
    assert cluster.nodes[3].data == cluster.nodes[1].data


PART = FetchResponse.FetchableTopicResponse.PartitionData
HALF_A_BATCH = bytes(build_batch([Record(0, 0, b"k", b"v", ())]))[:-4]
NUISANCES = {
    "nothing fits": {"error_code": ErrorCode.OFFSET_OUT_OF_RANGE},
    "another leader": {"error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER},
    "a code of tomorrow": {"error_code": 9_999},
    "a branch that cuts nothing": {"diverging_epoch": PART.EpochEndOffset(epoch=0, end_offset=1 << 40)},
    "a branch of no epoch": {"diverging_epoch": PART.EpochEndOffset(epoch=-1, end_offset=0)},
    "half a batch": {"records": HALF_A_BATCH},
    "no batch": {"records": b"\x00" * 61},
    "an old batch": {"records": bytes(61)},
}


@pytest.mark.parametrize("name", [*NUISANCES, "a session error", "a whole error", "no answer"])
@pytest.mark.parametrize("ends_at", [0, 5, 1 << 40, -1, "ever higher", "by turns"])
def test_no_answer_of_a_leader_makes_a_loop_of_requests(cluster, monkeypatch, name, ends_at):
    """Whatever a leader answers, over and over: a follower asks a bounded number of times in a second."""
    cluster.cut = {1, 2, 3}
    cluster.settle(500)
    asked = []
    ends = {"ever higher": itertools.count(200), "by turns": itertools.cycle((200, 300))}
    ends_of_now = ends.get(ends_at, itertools.repeat(ends_at))

    def ask(wire, request, response, answered):
        asked.append(request)
        if name == "no answer":
            answer = ConnectionError("gone")
        elif response is FetchResponse:
            codes = {"a session error": 70, "a whole error": 56}
            answer = FetchResponse(error_code=codes.get(name, 0), session_id=7)
            if name in NUISANCES:
                part = PART(partition_index=0, high_watermark=3, log_start_offset=0, **NUISANCES[name])
                answer.responses = [
                    FetchResponse.FetchableTopicResponse(topic_id=TOPIC, partitions=[part])
                ]
        else:
            topic = ListOffsetsResponse.ListOffsetsTopicResponse
            place = topic.ListOffsetsPartitionResponse(partition_index=0, offset=next(ends_of_now))
            answer = ListOffsetsResponse(topics=[topic(name="t", partitions=[place])])
        cluster.timers.call_soon(lambda: answered(answer))

    monkeypatch.setattr(Wire, "ask", ask)
    cut_to(cluster.nodes[3].partition, 100)
    cluster.elect(2, [2], to=(3,))
    cluster.settle()
    assert 0 < len(asked) <= 12, len(asked)
    for _ in range(100):
        cluster.settle(100)
    assert 5 <= len(asked) <= 120, len(asked)  # of two followers, in ten seconds, up to three a try


@pytest.mark.parametrize("where", ["storing", "asking"])
def test_what_nobody_expects_of_one_partition_does_not_end_the_fetching(cluster, monkeypatch, where):
    real_store, real_place, struck = fetcher.store, fetcher._Followed.place, []

    def strike(partition):
        if partition.topic == "t" and len(struck) < 3:
            struck.append(1)
            raise RuntimeError("nobody expects this")

    def store(partition, records):
        strike(partition)
        return real_store(partition, records)

    def place(followed):
        strike(followed.partition)
        return real_place(followed)

    if where == "storing":
        monkeypatch.setattr(fetcher, "store", store)
    else:
        monkeypatch.setattr(fetcher._Followed, "place", place)
    cluster.produce(b"one")
    for _ in range(20):
        cluster.settle(500)
    assert len(struck) == 3
    assert cluster.watermarks() == [1, 1, 1]
    assert any("nobody expects this" in text for text in cluster.reports)


@pytest.mark.parametrize("where", ["asking", "asked", "answered", "throttling"])
def test_what_nobody_expects_of_a_request_does_not_end_the_fetching(cluster, monkeypatch, where):
    struck = []

    def struck_by(call):
        def strike(*arguments, **how):
            if len(struck) < 3:
                struck.append(1)
                if where == "asked":
                    call(*arguments, **how)  # and it is answered all the same
                raise RuntimeError("nobody expects this")
            return call(*arguments, **how)

        return strike

    if where == "answered":
        monkeypatch.setattr(fetcher.Fetcher, "_take", struck_by(fetcher.Fetcher._take))
    elif where == "throttling":
        monkeypatch.setattr(fetcher.Fetcher, "_hold_back", struck_by(fetcher.Fetcher._hold_back))
        for node in cluster.nodes.values():
            monkeypatch.setattr(node.roles.throttles.taking, "named", {("t", 0): None})
    else:
        monkeypatch.setattr(Wire, "ask", struck_by(Wire.ask))
    cluster.produce(b"one")
    cluster.settle()
    asked = len(cluster.requests)
    for _ in range(20):
        cluster.settle(500)
    assert len(struck) == 3
    assert cluster.watermarks() == [1, 1, 1]
    assert len(cluster.requests) - asked < 120, "and it is no loop without a delay"
    assert any("a bug of Ottla" in text and "nobody expects this" in text for text in cluster.reports)


def test_what_nobody_expects_of_one_out_of_range_does_not_end_its_fetching(cluster, monkeypatch):
    struck, real_cut = [], fetcher.cut_to

    def cut(partition, offset):
        if len(struck) < 3:
            struck.append(1)
            raise RuntimeError("nobody expects this")
        real_cut(partition, offset)

    cluster.produce(b"one")
    cluster.cut.add(1)
    cluster.settle(500)
    cluster.elect(1, [1])
    leader = cluster.nodes[1].partition
    leader.leadership.min_isr = 1
    cluster.produce(b"two", acks=1)
    leader.log.truncate_fully_and_start_at(5)
    monkeypatch.setattr(fetcher, "cut_to", cut)
    cluster.cut.clear()
    for _ in range(30):
        cluster.settle(500)
    assert len(struck) == 3
    assert [node.partition.log.end_offset for node in cluster.nodes.values()] == [5, 5, 5]
    assert any("a bug of Ottla" in text and "nobody expects this" in text for text in cluster.reports)
