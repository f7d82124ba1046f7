"""Produce to internal topics: whoever calls itself __admin_client may, but only what a coordinator can read back."""

import re
import struct
from types import SimpleNamespace

import pytest

from ottla.broker.api import Pending
from ottla.broker.apis import produce
from ottla.broker.coordination import Coordination
from ottla.broker.coordinators import partition_of
from ottla.broker.internal_topics import OFFSETS, SHARE_STATE, TRANSACTIONS, make
from ottla.groups.offset_records import Place, commit_record, tombstone
from ottla.share.key import ShareKey
from ottla.share.record import PartitionState, snapshot_record
from ottla.transactions.records import record_of, tombstone_of
from ottla.transactions.state import State
from ottla.transactions.transaction import Transaction
from ottla.wire.batch import build_batch
from ottla.wire.compression import Codec
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.produce import ProduceRequest
from ottla.wire.record import Record
from tests.unit.broker.test_coordinators import commit, committed
from tests.unit.broker.test_inspection import HeldWorker

COMMIT = commit_record(Place("g", "t", 0), 7, -1, "", 1).encode()
TRANSACTION = Transaction(1, 0, 60_000, State.EMPTY, frozenset(), -1)
ENDED = record_of("x", TRANSACTION, 1)
SNAPSHOT = snapshot_record(ShareKey("g", bytes(15) + b"\1", 0), PartitionState(0, 0, 0, 0, 0)).encode()
UNKNOWN_KIND = struct.pack(">h", 99) + b"?"


@pytest.fixture
def station(make_station):
    station = make_station(
        **{
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.num.partitions": "1",
            "share.coordinator.state.topic.num.partitions": "1",
        }
    )
    for topic in (OFFSETS, TRANSACTIONS, SHARE_STATE):
        make(station.broker, topic, lambda code: None)
    station.settle()
    station.create("t")
    connection = station.connection
    connection.session = SimpleNamespace(client_id=b"__admin_client")
    connection.muted = False
    connection.mute = lambda: setattr(connection, "muted", True)
    connection.unmute = lambda: setattr(connection, "muted", False)
    return station


def batch(station, *pairs, codec=Codec.NONE):
    records = [Record(number, station.clock.ms, *pair, ()) for number, pair in enumerate(pairs)]
    return bytes(build_batch(records, codec=codec))


def write_later(station, topic, *pairs, version=12, **fields):
    """Produce records to the only partition of an internal topic; return where the answer will be."""
    parts = ProduceRequest.TopicProduceData
    records = memoryview(bytearray(batch(station, *pairs, **fields)))
    part = parts.PartitionProduceData(index=0, records=records)
    topic_id = station.broker.image.topics.by_name[topic].id
    named = parts(name=topic, topic_id=topic_id, partition_data=[part])
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[named])
    answers = []
    reply = produce.API.handle(request, version, station.connection, station.broker)
    if isinstance(reply, Pending):
        reply.then(lambda response: answers.append(response.responses[0].partition_responses[0]))
    else:
        answers.append(reply.responses[0].partition_responses[0])
    station.settle()
    return answers


def write(station, topic, *pairs, **fields):
    """Produce records, and return what is said of them."""
    return write_later(station, topic, *pairs, **fields)[0]


def end_offset(station, topic):
    return station.table.by_name(topic, 0).log.end_offset


def status(value):
    """Encode the record of a transaction in a state of this number."""
    record = record_of("x", TRANSACTION, 0)
    record.value.transaction_status = value
    return record.encode()


@pytest.mark.parametrize(("version", "codec"), [(7, Codec.NONE), (13, Codec.GZIP)])
@pytest.mark.parametrize(
    ("topic", "key", "value", "why"),
    [
        (OFFSETS, COMMIT[0], b"\0\3\0", "record 1 .*OffsetCommitValue"),
        (OFFSETS, COMMIT[0], b"\0", "record 1 .*names no version"),
        (OFFSETS, COMMIT[0], struct.pack(">h", 99), "record 1 .*no version 99"),
        (OFFSETS, COMMIT[0] + b"?", COMMIT[1], "record 1 .*before its buffer"),
        (OFFSETS, b"\0", b"x", "record 1 .*names no type"),
        (OFFSETS, struct.pack(">h", 2) + b"\x7f\xff", b"x", "record 1 "),
        (TRANSACTIONS, ENDED.encode()[0], b"\0\0\0", "record 1 "),
        (TRANSACTIONS, *status(99), "record 1 .*99 is no state of a transaction"),
        (SHARE_STATE, SNAPSHOT[0], b"\0\0\0", "record 1 "),
        (SHARE_STATE, None, b"x", "record 1 .*no key"),
    ],
    ids=[
        "short value", "no version", "unknown version", "long key", "short key", "cut key", "short transaction",
        "unknown state", "short snapshot", "no key",
    ],
)
def test_what_no_coordinator_can_read_is_refused(station, topic, key, value, why, version, codec):
    good = {OFFSETS: COMMIT, TRANSACTIONS: ENDED.encode(), SHARE_STATE: SNAPSHOT}[topic]
    told = write(station, topic.name, good, (key, value), version=version, codec=codec)
    assert told.error_code == ErrorCode.INVALID_RECORD
    assert end_offset(station, topic.name) == 0
    if version >= 8:
        assert re.search(why, told.error_message), told.error_message
        assert [each.batch_index for each in told.record_errors] == [1]
    assert commit(station, "g", "t", 5) == 0
    assert committed(station, "g", "t") == 5


@pytest.mark.parametrize(("version", "codec"), [(7, Codec.NONE), (13, Codec.GZIP)])
def test_what_a_coordinator_can_read_is_taken(station, version, codec):
    pairs = {
        OFFSETS: [COMMIT, tombstone(Place("g", "u", 0)).encode(), (UNKNOWN_KIND, b"?")],
        TRANSACTIONS: [ENDED.encode(), tombstone_of("y").encode()],
        SHARE_STATE: [SNAPSHOT],
    }
    for topic, written in pairs.items():
        told = write(station, topic.name, *written, version=version, codec=codec)
        assert (told.error_code, told.base_offset) == (0, 0), told.error_message
        assert end_offset(station, topic.name) == len(written)
    assert not station.connection.muted
    assert committed(station, "g", "t") == 7


def test_others_write_nothing(station):
    station.connection.session.client_id = b"me"
    assert write(station, OFFSETS.name, COMMIT).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert end_offset(station, OFFSETS.name) == 0


@pytest.mark.parametrize(("pair", "code"), [(COMMIT, 0), ((b"\0", b""), ErrorCode.INVALID_RECORD)])
def test_records_are_decoded_in_a_thread(station, pair, code):
    """However many there are, the loop does not wait for it."""
    station.broker.inspector = HeldWorker()
    answers = write_later(station, OFFSETS.name, pair)
    assert answers == []
    assert station.connection.muted
    station.broker.inspector.work()
    station.settle()
    assert not station.connection.muted
    assert [each.error_code for each in answers] == [code]
    assert end_offset(station, OFFSETS.name) == (code == 0)


def test_a_batch_that_holds_more_than_a_load_takes_is_refused(station):
    bomb = (UNKNOWN_KIND, bytes(65 << 20))
    told = write(station, OFFSETS.name, bomb, codec=Codec.ZSTD)
    assert told.error_code == ErrorCode.INVALID_RECORD
    assert "decompress to more than" in told.error_message
    assert end_offset(station, OFFSETS.name) == 0


def test_the_number_of_records_of_unknown_types_is_reported_once_a_load(station):
    partition = station.table.by_name(OFFSETS.name, partition_of("g", 1))
    assert commit(station, "g", "t", 5) == 0
    for _ in range(3):
        partition.append_own(bytearray(batch(station, (UNKNOWN_KIND, b"?"))), station.clock.ms)
    station.broker.coordination = Coordination(
        station.broker, station.entropy.uuid, station.reports.append
    )
    station.reports.clear()
    for _ in range(2):
        assert committed(station, "g", "t") == 5
    assert len(station.reports) == 1
    assert "3 records of types that this release does not know, the first of type 99" in station.reports[0]
    assert f"{OFFSETS.name}-0" in station.reports[0]
