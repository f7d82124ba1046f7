"""Control records: the markers of transactions and the records of the quorum."""

import struct

import pytest
from aiokafka.record.control_record import ControlRecord as AioControlRecord
from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch

from ottla.wire.batch import Batch, crc_ok, read_records
from ottla.wire.control import (
    Control,
    ControlType,
    control_key,
    control_type,
    end_transaction_batch,
    quorum_batch,
    read_control,
)
from ottla.wire.errors import ProtocolError
from ottla.wire.messages.control import (
    EndTxnMarker,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from ottla.wire.record import Record

MESSAGES = [
    (
        ControlType.LEADER_CHANGE,
        LeaderChangeMessage(
            version=0,
            leader_id=3,
            voters=[LeaderChangeMessage.Voter(voter_id=3), LeaderChangeMessage.Voter(voter_id=4)],
            granting_voters=[LeaderChangeMessage.Voter(voter_id=3)],
        ),
    ),
    (
        ControlType.LEADER_CHANGE,
        LeaderChangeMessage(
            version=1,
            leader_id=3,
            voters=[LeaderChangeMessage.Voter(voter_id=3, voter_directory_id=b"d" * 16)],
        ),
    ),
    (ControlType.SNAPSHOT_HEADER, SnapshotHeaderRecord(version=0, last_contained_log_timestamp=12)),
    (ControlType.SNAPSHOT_FOOTER, SnapshotFooterRecord(version=0)),
    (ControlType.KRAFT_VERSION, KRaftVersionRecord(version=0, kraft_version=1)),
    (ControlType.KRAFT_VOTERS, VotersRecord(version=0)),
]


@pytest.mark.parametrize("commit", [True, False])
def test_end_of_a_transaction(commit):
    data = end_transaction_batch(
        commit=commit,
        producer_id=7,
        producer_epoch=2,
        coordinator_epoch=5,
        timestamp_ms=1_000,
        base_offset=40,
        leader_epoch=1,
    )
    batch = Batch.parse(data)
    assert batch.is_control
    assert batch.is_transactional
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7, 2, -1)
    assert (batch.base_offset, batch.last_offset, batch.partition_leader_epoch) == (40, 40, 1)
    assert crc_ok(data, 0, len(data))
    (record,) = read_records(data)
    kind = ControlType.COMMIT if commit else ControlType.ABORT
    assert read_control(record) == Control(kind, EndTxnMarker(coordinator_epoch=5))
    assert record.key == struct.pack(">hh", 0, int(commit))
    assert record.value == struct.pack(">hi", 0, 5)
    assert AioControlRecord.parse(record.key).type_ == int(commit)
    (theirs,) = KafkaPythonBatch(bytes(data))
    assert theirs.commit is commit
    assert theirs.abort is not commit


@pytest.mark.parametrize(("kind", "message"), MESSAGES)
def test_quorum_records(kind, message):
    data = quorum_batch([message, message], timestamp_ms=9, base_offset=5, leader_epoch=2)
    batch = Batch.parse(data)
    assert batch.is_control
    assert not batch.is_transactional
    assert (batch.base_offset, batch.last_offset, batch.producer_id) == (5, 6, -1)
    records = read_records(data)
    assert [record.offset for record in records] == [5, 6]
    assert [read_control(record) for record in records] == [Control(kind, message)] * 2
    assert records[0].value is not None
    assert records[0].value[:2] == struct.pack(">h", message.version)


def test_types_from_the_future_are_passed_over():
    assert control_type(struct.pack(">hh", 0, 7)) is None
    assert control_type(struct.pack(">hh", 3, 1) + b"more") is ControlType.COMMIT
    assert read_control(Record(0, 0, struct.pack(">hh", 0, 7), None)) is None


def test_a_newer_marker_is_read_as_the_newest_known():
    marker = Record(0, 0, control_key(ControlType.COMMIT), struct.pack(">hi", 4, 9) + b"more")
    assert read_control(marker) == Control(ControlType.COMMIT, EndTxnMarker(coordinator_epoch=9))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\0\0\0\0\0\0"),
        (b"\0\0\0", b"\0\0\0\0\0\0"),
        (b"\xff\xff\0\1", b"\0\0\0\0\0\0"),
        (b"\0\0\0\1", None),
        (b"\0\0\0\1", b"\0"),
        (b"\0\0\0\1", b"\0\0\0\0\0"),
        (b"\0\0\0\1", b"\xff\xff\0\0\0\0"),
        (b"\0\0\0\2", b"\0\0\0"),
    ],
)
def test_nonsense(key, value):
    with pytest.raises(ProtocolError):
        read_control(Record(0, 0, key, value))
