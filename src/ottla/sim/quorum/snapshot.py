"""Snapshots of the simulated state machine, in the form of Kafka's checkpoint files: header, state, footer.

The state is a digest over every committed record, so two nodes agree at an offset exactly when all before it is equal.
"""

from typing import NamedTuple

from ottla.raft.snapshot import SnapshotId
from ottla.raft.voters import Voters
from ottla.wire.batch import build_batch, crc_ok, read_records, scan
from ottla.wire.control import quorum_batch, read_control
from ottla.wire.errors import BrokerError, ProtocolError
from ottla.wire.messages.control import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from ottla.wire.record import Record


class Content(NamedTuple):
    """What a snapshot says."""

    digest: bytes
    kraft_version: int
    voters: Voters | None


def write_snapshot(id: SnapshotId, content: Content) -> bytes:
    """The bytes of a snapshot."""
    head: list[SnapshotHeaderRecord | KRaftVersionRecord | VotersRecord] = [SnapshotHeaderRecord()]
    if content.kraft_version:
        head.append(KRaftVersionRecord(kraft_version=content.kraft_version))
        if content.voters is not None:
            head.append(content.voters.record())
    offset = len(head)
    data = quorum_batch(head, timestamp_ms=0, leader_epoch=id.epoch)
    data += build_batch(
        [Record(offset, 0, b"digest", content.digest)], base_offset=offset, leader_epoch=id.epoch
    )
    data += quorum_batch(
        [SnapshotFooterRecord()], timestamp_ms=0, base_offset=offset + 1, leader_epoch=id.epoch
    )
    return bytes(data)


def read_snapshot(data: bytes) -> Content | None:
    """What a snapshot says; None when it is not whole or not sound."""
    digest, kraft_version, voters, is_whole = b"", 0, None, False
    try:
        for position, batch in scan(data):
            if not crc_ok(data, position, batch.size):
                return None
            for record in read_records(data, position):
                control = read_control(record) if batch.is_control else None
                if control is None:
                    digest = record.value or b""
                elif isinstance(control.message, KRaftVersionRecord):
                    kraft_version = control.message.kraft_version
                elif isinstance(control.message, VotersRecord):
                    voters = Voters.read(control.message)
                is_whole = control is not None and isinstance(control.message, SnapshotFooterRecord)
    except (ProtocolError, BrokerError):
        return None
    return Content(digest, kraft_version, voters) if is_whole else None
