"""Markers reach the leader that a partition has, whoever led it when the transaction ended."""

import errno
from types import SimpleNamespace

import pytest

from ottla.broker import markers
from ottla.broker.apis import end_txn, write_txn_markers
from ottla.broker.internal_topics import OFFSETS, TRANSACTIONS, make
from ottla.metadata.fold import Fold
from ottla.partition.partition import Partition
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.write_txn_markers import WriteTxnMarkersResponse
from ottla.wire.records.metadata import PartitionChangeRecord, RemoveTopicRecord
from tests.unit.broker.conftest import Station
from tests.unit.broker.test_coordinators import Writer

ELSEWHERE = 2
SETTINGS = {
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
}


class Neighbour:
    """The way to another broker, which is a station of its own, or one that only says `codes`, one after the other."""

    def __init__(self, station=None, codes=()):
        self.station = station
        self.codes = list(codes)
        self.asked = []

    def ask(self, request, response, answered):
        names = [
            (topic.name, index)
            for marker in request.markers
            for topic in marker.topics
            for index in topic.partition_indexes
        ]
        self.asked.append(names)
        if not self.codes:
            answered(self.station.ask(write_txn_markers.API, request))
            return
        code = self.codes.pop(0)
        if isinstance(code, Exception):
            answered(code)
            return
        done = WriteTxnMarkersResponse.WritableTxnMarkerResult
        topic = done.WritableTxnMarkerTopicResult
        part = topic.WritableTxnMarkerPartitionResult
        answered(
            WriteTxnMarkersResponse(
                markers=[
                    done(
                        producer_id=request.markers[0].producer_id,
                        topics=[
                            topic(name=name, partitions=[part(partition_index=index, error_code=code)])
                            for name, index in names
                        ],
                    )
                ]
            )
        )


@pytest.fixture
def stations(tmp_path):
    """A broker that coordinates, and one that partitions are moved to; both have the topics "t" and "u"."""
    made = []
    for name in ("here", "there"):
        station = Station(tmp_path / name, **SETTINGS)
        for topic in (OFFSETS, TRANSACTIONS):
            make(station.broker, topic, lambda code: None)
        station.settle()
        for topic in ("t", "u"):
            station.create(topic)
        made.append(station)
    here, there = made
    neighbour = Neighbour(there)
    here.broker.peer = lambda node_id: neighbour
    yield SimpleNamespace(here=here, there=there, neighbour=neighbour)
    for station in made:
        station.close()


def tell(station, *records):
    """Let a broker hear of a change of the metadata."""
    fold = Fold(station.broker.image)
    for offset, record in enumerate(records, station.quorum.committed_offset):
        fold.apply(offset, record)
    fold.advance(station.quorum.committed_offset + len(records), 1, station.clock.ms)
    for change in fold.settle():
        station._follow(change.delta, change.image)


def move(station, topic, leader=ELSEWHERE):
    """Have another broker lead a partition, with no replica left here."""
    topic_id = station.broker.image.topics.by_name[topic].id
    tell(
        station,
        PartitionChangeRecord(
            topic_id=topic_id, partition_id=0, replicas=[leader], isr=[leader], leader=leader
        ),
    )


def hold(station, topic):
    """Keep what is written to a partition from being committed."""
    partition = station.table.by_name(topic, 0)
    partition._flusher = SimpleNamespace(appended=lambda _: None)
    return partition


def replicate(stations, topic):
    """The other broker has what was written here."""
    source, target = (each.table.by_name(topic, 0) for each in (stations.here, stations.there))
    target.log.append_as_follower(bytes(source.log.read(0, 1 << 20, source.log.end_offset)))
    target.advance(target.log.end_offset)
    return target


def begun(stations, *topics):
    """A transaction that has written to topics of this broker, and what it has written is at the other as well."""
    writer = Writer(stations.here)
    assert writer.add(*topics) == [0] * len(topics)
    for number, topic in enumerate(topics):
        writer.sequence = 0
        assert writer.write(topic) == 0, number
        replicate(stations, topic)
    return writer


def test_a_transaction_that_was_committed_ends_at_the_leader_that_its_partition_was_moved_to(stations):
    here, there = stations.here, stations.there
    writer = begun(stations, "t")
    moved = there.table.by_name("t", 0)
    hold(here, "t")
    assert writer.end(committed=True) == 0
    assert moved.last_stable_offset == 0
    move(here, "t")
    here.settle(1_000)
    assert moved.last_stable_offset == moved.log.end_offset == 2
    # The next transaction of the same producer is another, and takes nothing of this one with it.
    assert writer.add("t") == [0]
    there.produce(
        "t", producer_id=writer.id, producer_epoch=writer.epoch, base_sequence=1, transactional=True
    )
    assert writer.end(committed=False) == 0
    here.settle(1_000)
    assert moved.last_stable_offset == moved.log.end_offset == 4
    assert moved.log.aborted_transactions(0, 4) == [(writer.id, 2)]


def test_a_broker_that_does_not_know_the_partition_yet_is_asked_again(stations):
    here, neighbour = stations.here, stations.neighbour
    writer = begun(stations, "t", "u")
    move(here, "t")
    neighbour.codes = [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ConnectionError("hung up"),
    ]
    assert writer.end(committed=True) == 0
    assert here.broker.transactions.unsent == 1, "the marker of the other partition is written"
    assert writer.add("t") == [ErrorCode.CONCURRENT_TRANSACTIONS]
    for _ in range(6):
        here.settle(5_000)
    assert here.broker.transactions.unsent == 0
    assert neighbour.asked == [[("t", 0)]] * 6
    assert here.table.by_name("u", 0).log.end_offset == 2, "one marker"
    assert stations.there.table.by_name("t", 0).last_stable_offset == 2
    assert writer.add("t") == [0]


def test_a_broker_that_answers_with_a_code_that_nobody_knows_is_asked_again(stations):
    """It may be of a newer release; the transaction would never end."""
    here, neighbour = stations.here, stations.neighbour
    here.broker.transactions.markers._report = here.reports.append
    writer = begun(stations, "t")
    move(here, "t")
    neighbour.codes = [9_999]
    assert writer.end(committed=True) == 0
    assert here.broker.transactions.unsent == 1
    assert "9999" in here.reports[-1]
    assert "t-0" in here.reports[-1]
    here.settle(5_000)
    assert neighbour.asked == [[("t", 0)]] * 2
    assert stations.there.table.by_name("t", 0).last_stable_offset == 2
    assert writer.add("t") == [0]


def test_an_answer_that_cannot_be_understood_is_asked_for_again(stations, monkeypatch):
    here, neighbour = stations.here, stations.neighbour
    here.broker.transactions.markers._report = here.reports.append
    writer = begun(stations, "t")
    move(here, "t")
    with monkeypatch.context() as broken:
        broken.setattr(neighbour, "ask", lambda request, response, answered: answered(None))
        assert writer.end(committed=True) == 0
    assert here.broker.transactions.unsent == 1
    assert "could not be understood" in here.reports[-1]
    here.settle(5_000)
    assert stations.there.table.by_name("t", 0).last_stable_offset == 2
    assert writer.add("t") == [0]


def test_a_topic_that_is_deleted_needs_no_marker(stations):
    here, neighbour = stations.here, stations.neighbour
    writer = begun(stations, "t", "u")
    move(here, "t")
    neighbour.codes = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 3
    assert writer.end(committed=True) == 0
    here.settle(500)
    assert writer.add("u") == [ErrorCode.CONCURRENT_TRANSACTIONS]
    tell(here, RemoveTopicRecord(topic_id=here.broker.image.topics.by_name["t"].id))
    here.settle(5_000)
    assert writer.add("u") == [0]


def test_a_topic_that_is_deleted_while_its_marker_waits_needs_none(stations):
    here = stations.here
    writer = begun(stations, "t")
    hold(here, "t")
    assert writer.end(committed=True) == 0
    tell(here, RemoveTopicRecord(topic_id=here.broker.image.topics.by_name["t"].id))
    here.settle(5_000)
    assert writer.add("u") == [0]


def test_who_waits_for_a_replica_that_moves_away_hears_that_another_leads(stations):
    here = stations.here
    partition = hold(here, "t")
    heard = []
    partition.when_durable(1, heard.append)
    partition.when_stored(1, heard.append)
    move(here, "t")
    assert [error.code for error in heard] == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2


def test_markers_of_a_coordinator_that_lost_its_leadership_are_left_to_the_next(stations):
    here, neighbour = stations.here, stations.neighbour
    writer = begun(stations, "t")
    move(here, "t")
    neighbour.codes = [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert writer.end(committed=True) == 0
    partition = here.table.by_name(TRANSACTIONS.name, 0)
    here.broker.transactions.machines.lose(0)
    partition.follow(partition.leader_epoch + 1)
    for _ in range(3):
        here.settle(5_000)
    assert len(neighbour.asked) == 1, "it does not go on"
    assert here.broker.transactions.unsent == 0
    partition.lead(partition.leader_epoch + 1)
    assert here.broker.load_some()
    here.settle(5_000)
    assert len(neighbour.asked) == 2
    assert stations.there.table.by_name("t", 0).last_stable_offset == 2
    assert writer.add("t") == [0]


def test_a_marker_that_could_not_be_written_for_whatever_reason_is_written_again(stations, monkeypatch):
    here = stations.here
    writer = begun(stations, "t")
    with monkeypatch.context() as broken:
        broken.setattr(Partition, "append_own", fails_for("t"))
        assert writer.end(committed=True) == 0
        assert writer.add("t") == [ErrorCode.CONCURRENT_TRANSACTIONS]
    here.settle(5_000)
    assert here.table.by_name("t", 0).last_stable_offset == 2
    assert writer.add("t") == [0]


def fails_for(topic):
    real = Partition.append_own

    def append_own(self, *arguments, **keywords):
        if self.topic == topic:
            raise OSError(errno.EMFILE, "too many")
        return real(self, *arguments, **keywords)

    return append_own


# Many at once


@pytest.fixture
def crowded(tmp_path, monkeypatch):
    """A broker with more topics than a turn writes markers, whose turns are counted."""
    monkeypatch.setattr(markers, "MARKERS_A_TURN", 4)
    station = Station(tmp_path / "one", **SETTINGS)
    for topic in (OFFSETS, TRANSACTIONS):
        make(station.broker, topic, lambda code: None)
    station.settle()
    for number in range(20):
        station.create(f"t{number}")
    writing = station.broker.transactions.markers
    station.turns = [0]
    real, next_turn = writing.write, writing._next_turn

    def write(*arguments):
        station.turns[-1] += 1
        real(*arguments)

    def turn():
        station.turns.append(0)
        next_turn()

    writing.write, writing._next_turn, writing._left = write, turn, 4
    yield station
    station.close()


def test_a_transaction_of_very_many_partitions_ends_some_a_turn(crowded):
    writer = Writer(crowded)
    topics = [f"t{number}" for number in range(20)]
    assert writer.add(*topics) == [0] * 20
    assert writer.end(committed=True) == 0
    assert sum(crowded.turns) == 20 and max(crowded.turns) == 4
    assert all(crowded.table.by_name(topic, 0).log.end_offset == 1 for topic in topics)
    assert writer.add("t0") == [0], "the transaction is over"


def test_another_transaction_ends_meanwhile(crowded):
    large, small = Writer(crowded, "large"), Writer(crowded, "small")
    assert large.add(*[f"t{number}" for number in range(20)]) == [0] * 20
    assert small.add("t0") == [0]
    over, submit = [], crowded.broker.transactions._complete
    crowded.broker.transactions._complete = lambda markers, retry_s: (
        over.append(markers.transactional_id),
        submit(markers, retry_s),
    )
    for writer in (large, small):
        request = EndTxnRequest(
            transactional_id=writer.name, producer_id=writer.id, producer_epoch=writer.epoch, committed=True
        )
        end_txn.API.handle(request, 4, crowded.connection, crowded.broker)
    crowded.settle()
    assert over == ["small", "large"]


def test_transactions_that_run_out_together_end_some_a_turn(crowded):
    for number in range(20):
        assert Writer(crowded, f"tx{number}").add(f"t{number}") == [0]
    crowded.settle(61_000)
    for _ in range(20):
        crowded.settle(10_000)
    assert sum(crowded.turns) == 20 and max(crowded.turns) == 4
    assert all(crowded.table.by_name(f"t{number}", 0).log.end_offset == 1 for number in range(20))
