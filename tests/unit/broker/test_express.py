"""The express lane gives what the common road gives, to the byte, and leaves to it what is not of its form."""

import errno
import struct
from types import SimpleNamespace

import pytest

from ottla.broker.apis import produce
from ottla.broker.dispatch import Dispatcher
from ottla.wire.batch import BATCH_HEADER_SIZE, Batch, assemble, build_batch
from ottla.wire.compression import Codec
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.produce import ProduceRequest, ProduceResponse
from ottla.wire.record import Record
from ottla.wire.record_walk import PlainWalk
from tests.unit.broker.conftest import Station
from tests.unit.log.topic_settings import OF_TOPICS

Topic = ProduceRequest.TopicProduceData
Part = Topic.PartitionProduceData
NOW = 1_700_000_000_000


def batch(size=10, **how):
    return build_batch([Record(0, NOW, b"k", bytes(size), ())], **how)


def lying():
    """A batch whose header names a later time than its record."""
    whole = batch()
    return assemble(Batch.parse(whole)._replace(max_timestamp=NOW + 5), whole[BATCH_HEADER_SIZE:])


def unreadable(body, count=1, codec=0, **how):
    """A batch with a right header and checksum over anything."""
    header = Batch.parse(batch(**how))._replace(record_count=count, last_offset_delta=count - 1)
    return assemble(header._replace(attributes=header.attributes | codec), body)


def spoilt():
    data = batch()
    data[-1] ^= 1
    return data


BATCHES = {
    "plain": batch(),
    "of 1,000 bytes": batch(1000),
    "of 20,000 bytes": batch(20_000),
    "compressed": batch(codec=Codec.ZSTD),
    "idempotent": batch(producer_id=5, producer_epoch=0, base_sequence=0),
    "out of sequence": batch(producer_id=6, producer_epoch=0, base_sequence=7),
    "transactional": batch(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True),
    "corrupt": spoilt(),
    "too large": batch(2_000_000),
    "cut short": batch()[:40],
    "empty": b"",
    "two batches": batch() + batch(),
    "no records": unreadable(b"\xff" * 40),
    "fewer than it says": unreadable(b"\0", 1000),
    "no zstd": unreadable(b"\xff" * 40, codec=Codec.ZSTD),
    "no gzip": unreadable(b"\xff" * 40, codec=Codec.GZIP),
    "no lz4": unreadable(b"\xff" * 40, codec=Codec.LZ4),
    "no snappy": unreadable(b"\xff" * 40, codec=Codec.SNAPPY),
    "without a key": build_batch([Record(0, NOW, None, b"v", ())]),
    "compressed, without a key": build_batch([Record(0, NOW, None, b"v", ())], codec=Codec.LZ4),
    "of the broker's time": batch(log_append_time_ms=NOW),
    "of the future": build_batch([Record(0, NOW + (1 << 40), b"k", b"v", ())]),
    "with a wrong greatest time": lying(),
    "out of sequence and compressed": batch(
        codec=Codec.GZIP, producer_id=6, producer_epoch=0, base_sequence=7
    ),
}
# Those under which the records of every batch are looked through: six forms of it.
CHECKED = ("default", "LogAppendTime", "compacted", "zstd, fast", "uncompressed", "all of it")


def request(version, records, topic_id, *, name="t", indexes=(0,), acks=1, **fields):
    parts = [Part(index=index, records=records) for index in indexes]
    place = Topic(topic_id=topic_id, partition_data=parts) if version >= 13 else Topic(name=name)
    place.partition_data = parts
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[place], **fields)


class Road:
    """One broker, asked over the wire; with or without the lane."""

    def __init__(self, station, *, lane, topic="t", **settings):
        self.station = station
        self.topic_id = station.create(topic, partitions=2, **settings).id
        station.table.by_name(topic, 0)
        self.replies = []
        self.dispatcher = Dispatcher((produce.API,), station.broker, self.replies.append)
        self.connection = SimpleNamespace(
            peer="client",
            session=SimpleNamespace(client_id=b""),
            reply=lambda parts: self.replies.append(b"".join(parts)),
            close=lambda: self.replies.append("closed"),
        )
        self.went = []
        for version in produce.API.versions:
            route = self.dispatcher._route(0, version)
            route.express = self._watch(route.express) if lane else None

    def _watch(self, express):
        def watched(*arguments):
            reply = express(*arguments)
            self.went.append(reply is not None)
            return reply

        return watched

    def send(self, version, message):
        head = struct.pack(">hhih", 0, version, 77, 2) + b"me" + (b"\0" if version >= 9 else b"")
        frame = bytearray(b"before" + head + message.encode(version) + b"after")
        self.dispatcher.serve(self.connection, frame, 6, len(frame) - 5)
        return self.replies[-1] if self.replies else None


@pytest.fixture
def roads(make_station, tmp_path):
    return Road(Station(tmp_path / "a"), lane=True), Road(Station(tmp_path / "b"), lane=False)


@pytest.mark.parametrize("kind", BATCHES)
@pytest.mark.parametrize("version", produce.API.versions)
def test_both_roads_lead_to_the_same_place(roads, version, kind):
    told = []
    for road in roads:
        for records in (BATCHES[kind], batch(), BATCHES[kind]):
            for acks in (1, -1):
                road.send(version, request(version, bytearray(records), road.topic_id, acks=acks))
        partition = road.station.table.by_name("t", 0)
        told.append((road.replies, partition.log.end_offset, partition.produce_requests, partition.bytes_in))
    assert told[0] == told[1]


@pytest.mark.parametrize("settings", OF_TOPICS)
@pytest.mark.parametrize("version", [9, 13])
def test_whatever_the_topic_both_roads_lead_to_the_same_place(tmp_path, version, settings):
    told = []
    for path in "ab":
        station = Station(tmp_path / path)
        told.append([])
        for number, kind in enumerate(BATCHES):
            name = f"t{number}"
            road = Road(station, lane=path == "a", topic=name, **OF_TOPICS[settings].keywords)
            known = {"producer_id": 6, "producer_epoch": 0, "base_sequence": 0}
            for records in (batch(**known), BATCHES[kind], batch(), BATCHES[kind]):
                for acks in (1, -1):
                    wish = request(version, bytearray(records), road.topic_id, name=name, acks=acks)
                    road.send(version, wish)
            log = station.table.by_name(name, 0).log
            stored = bytes(log.read(0, 1 << 20, log.end_offset))
            told[-1].append((kind, road.replies, log.end_offset, log.is_sync_due, stored))
        station.close()
    assert told[0] == told[1]


def answer_to(road, records):
    written = road.send(13, request(13, bytearray(records), road.topic_id))
    return ProduceResponse.decode(written[9:], 13).responses[0].partition_responses[0]


@pytest.mark.parametrize("settings", ["LogAppendTime", "all of it"])
def test_a_refused_batch_is_left_as_it_came(tmp_path, settings):
    """Found by reading: its timestamps were rewritten first, and then refused for that."""
    road = Road(Station(tmp_path), lane=True, **OF_TOPICS[settings].keywords)
    known = {"producer_id": 6, "producer_epoch": 0}
    assert answer_to(road, batch(**known, base_sequence=0)).error_code == 0
    assert (
        answer_to(road, batch(**known, base_sequence=7)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )
    assert answer_to(road, batch(**known, base_sequence=1)).error_code == 0
    road.station.close()


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("no records", ErrorCode.INVALID_RECORD),
        ("fewer than it says", ErrorCode.INVALID_RECORD),
        ("no zstd", ErrorCode.INVALID_RECORD),
        ("no gzip", ErrorCode.INVALID_RECORD),
        ("no lz4", ErrorCode.INVALID_RECORD),
        ("no snappy", ErrorCode.INVALID_RECORD),
        ("with a wrong greatest time", ErrorCode.NONE),
    ],
)
@pytest.mark.parametrize("settings", CHECKED)
@pytest.mark.parametrize("compiled", [True, False])
def test_what_cannot_be_read_is_not_stored(tmp_path, monkeypatch, settings, kind, code, compiled):
    if not compiled:
        monkeypatch.setattr("ottla.log.log._append_plain", None)
        monkeypatch.setattr("ottla.wire.record_walk.Walk", PlainWalk)
    road = Road(Station(tmp_path), lane=True, **OF_TOPICS[settings].keywords)
    assert answer_to(road, BATCHES[kind]).error_code == code
    log = road.station.table.by_name("t", 0).log
    assert log.end_offset == (code is ErrorCode.NONE)
    if code is ErrorCode.NONE and settings == "default":
        assert log.max_timestamp().timestamp == NOW, "the header says what the record says"
    road.station.close()


@pytest.mark.parametrize("version", [9, 12, 13])
def test_only_requests_of_the_form_take_the_lane(roads, version):
    road, common = roads
    tagged = request(version, batch(), road.topic_id)
    tagged.unknown_tags = {9: b"x"}
    for message, lane in (
        (request(version, batch(), road.topic_id), True),
        (request(version, batch(), road.topic_id, acks=-1), True),
        (request(version, batch(), road.topic_id, acks=0), False),
        (request(version, batch(), road.topic_id, acks=2), False),
        (request(version, batch(), road.topic_id, indexes=(0, 1)), False),
        (request(version, batch(), road.topic_id, indexes=(5,)), False),
        (request(version, batch(), bytes(16), name="nowhere"), False),
        (request(version, batch(), road.topic_id, transactional_id="me"), False),
        (tagged, False),
    ):
        road.send(version, message)
        assert road.went.pop() is lane, message
        common.send(version, message)
        assert road.replies == common.replies


def test_old_versions_take_the_common_road(roads):
    road, _ = roads
    for version in range(3, 9):
        road.send(version, request(version, batch(), road.topic_id))
    assert not any(road.went)


def test_a_request_cut_anywhere_is_left_alone(roads):
    road, _ = roads
    for version in (10, 13):
        whole = request(version, batch(), road.topic_id).encode(version)
        for cut in range(len(whole)):
            buffer = bytearray(whole[:cut])
            reply = produce.API.express(buffer, 0, len(buffer), 1, version, road.station.broker)
            assert reply is None, cut
    assert road.station.table.by_name("t", 0).log.end_offset == 0


@pytest.mark.parametrize("version", [9, 13])
@pytest.mark.parametrize("failure", [None, BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is gone")])
def test_an_answer_waits_until_its_records_are_durable(roads, version, failure):
    for road in roads:
        road.connection.owe = road.replies.append
        road.connection.settle = lambda _: None
        partition = road.station.table.by_name("t", 0)
        partition._flusher = SimpleNamespace(appended=lambda _: None)
        pending = road.send(version, request(version, batch(), road.topic_id))
        assert pending.parts is None
        if failure is None:
            partition.advance(1)
        else:
            partition.fail(failure)
        road.replies[:] = pending.parts
    assert roads[0].went == [True]
    assert roads[0].replies == roads[1].replies


def test_a_batch_whose_write_failed_is_not_refused_for_its_stamp(roads, monkeypatch):
    for road in roads:
        partition = road.station.table.by_name("t", 0)
        road.send(10, request(10, batch(), road.topic_id))

        def fail(*_):
            raise OSError(errno.ENOSPC, "no space left")

        with monkeypatch.context() as patched:
            patched.setattr(type(partition.log._active.file), "append", fail)
            patched.setattr("ottla.log.log._append_plain", None)  # which writes without asking Python
            road.send(10, request(10, batch(), road.topic_id))
        road.send(10, request(10, batch(), road.topic_id))
        assert partition.log.end_offset == 2
    assert roads[0].went == [True, False, True]
    mine, theirs = ([reply.replace(b"/a/", b"/b/") for reply in road.replies] for road in roads)
    assert mine == theirs
