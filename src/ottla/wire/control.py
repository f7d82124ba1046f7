"""Control records: what brokers and the quorum write into a log for each other.

The key is a version and a type; the value depends on the type. Transaction markers prefix their value with its version,
the quorum's records carry theirs in their first field, which lies in the same two bytes. A type that is not known is to
be passed over, never an error, since a newer broker may have written it.
"""

import enum
import struct
from collections.abc import Sequence
from typing import NamedTuple

from ottla.wire.batch import build_batch
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

ControlMessage = (
    EndTxnMarker
    | LeaderChangeMessage
    | SnapshotHeaderRecord
    | SnapshotFooterRecord
    | KRaftVersionRecord
    | VotersRecord
)

_KEY = struct.Struct(">hh")
_VERSION = struct.Struct(">h")


class ControlType(enum.IntEnum):
    """What a control record says."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class Control(NamedTuple):
    """A control record that was understood."""

    type: ControlType
    message: ControlMessage


_MESSAGES: dict[ControlType, type[ControlMessage]] = {
    ControlType.ABORT: EndTxnMarker,
    ControlType.COMMIT: EndTxnMarker,
    ControlType.LEADER_CHANGE: LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}
_TYPES = {
    LeaderChangeMessage: ControlType.LEADER_CHANGE,
    SnapshotHeaderRecord: ControlType.SNAPSHOT_HEADER,
    SnapshotFooterRecord: ControlType.SNAPSHOT_FOOTER,
    KRaftVersionRecord: ControlType.KRAFT_VERSION,
    VotersRecord: ControlType.KRAFT_VOTERS,
}


def control_key(kind: ControlType) -> bytes:
    """Return the key of a control record."""
    return _KEY.pack(0, kind)


def control_type(key: bytes | None) -> ControlType | None:
    """Return the type a key names, or None for one from the future."""
    if key is None or len(key) < _KEY.size:
        raise ProtocolError("control record has no key of version and type")
    version, kind = _KEY.unpack_from(key)
    if version < 0:
        raise ProtocolError(f"control record key has version {version}")
    try:
        return ControlType(kind)
    except ValueError:
        return None


def read_control(record: Record) -> Control | None:
    """Return what a record of a control batch says, or None when its type is not known."""
    kind = control_type(record.key)
    if kind is None:
        return None
    value = record.value
    if value is None or len(value) < _VERSION.size:
        raise ProtocolError(f"{kind.name} control record has no value")
    version: int = _VERSION.unpack_from(value)[0]
    message = _MESSAGES[kind]
    if version < 0:
        raise ProtocolError(f"{kind.name} control record has version {version}")
    # A newer version only adds fields, so the newest one known reads it.
    known = min(version, message.versions[-1])
    if message is EndTxnMarker:
        # Fields behind the epoch come from a version not known here.
        return Control(kind, EndTxnMarker.decode(value[2:6], known))
    return Control(kind, message.decode(value, known))


def end_transaction_batch(
    *,
    commit: bool,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp_ms: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """Return the batch that ends a transaction in one partition."""
    kind = ControlType.COMMIT if commit else ControlType.ABORT
    value = _VERSION.pack(0) + EndTxnMarker(coordinator_epoch=coordinator_epoch).encode(0)
    return build_batch(
        [Record(base_offset, timestamp_ms, control_key(kind), value)],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def quorum_batch(
    messages: Sequence[
        LeaderChangeMessage | SnapshotHeaderRecord | SnapshotFooterRecord | KRaftVersionRecord | VotersRecord
    ],
    *,
    timestamp_ms: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """Return a control batch of the quorum, each message in the version that it names itself."""
    records = [
        Record(
            base_offset + index,
            timestamp_ms,
            control_key(_TYPES[type(message)]),
            message.encode(message.version),
        )
        for index, message in enumerate(messages)
    ]
    return build_batch(records, base_offset=base_offset, leader_epoch=leader_epoch, control=True)
