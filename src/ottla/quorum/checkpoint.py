"""Checkpoint files: a run of record batches between a header and a footer, as snapshots and bootstrap files are.

    header batch (control: SnapshotHeader, and in a dynamic quorum KRaftVersion, Voters)
    data batches (metadata records)
    footer batch (control: SnapshotFooter)

Offsets inside a file count from zero and mean nothing outside it. A file without its footer is not whole.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ottla.metadata.error import MetadataError
from ottla.metadata.frame import decode, encode
from ottla.raft.voters import Voters
from ottla.wire.batch import build_batch, crc_ok, read_records, scan
from ottla.wire.control import quorum_batch, read_control
from ottla.wire.errors import BrokerError, ProtocolError
from ottla.wire.message import Message
from ottla.wire.messages.control import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from ottla.wire.record import Record

RECORDS_PER_BATCH = 500
BATCH_BYTES_MAX = 8 * 1024 * 1024
_FRAMES_BYTES_MAX = BATCH_BYTES_MAX - 1024 * 1024  # room for what surrounds ten thousand records


class Checkpoint(NamedTuple):
    """What a checkpoint file says; `records` are those that nobody has taken."""

    records: list[Message]
    timestamp_ms: int
    kraft_version: int
    voters: Voters | None


def checkpoint_batches(
    records: Iterable[Message],
    *,
    metadata_version: int,
    epoch: int = 0,
    now_ms: int,
    contained_ms: int = 0,
    kraft_version: int = 0,
    voters: Voters | None = None,
) -> Iterator[bytearray]:
    """The batches of a checkpoint file, one by one, so that a large one can be written bit by bit.

    `contained_ms` is the time of the newest record that went into the checkpoint.
    """
    head: list[SnapshotHeaderRecord | KRaftVersionRecord | VotersRecord] = [
        SnapshotHeaderRecord(last_contained_log_timestamp=contained_ms)
    ]
    if kraft_version > 0:
        head.append(KRaftVersionRecord(kraft_version=kraft_version))
        if voters is not None:
            head.append(voters.record())
    yield quorum_batch(head, timestamp_ms=now_ms, leader_epoch=epoch)
    offset = len(head)
    frames = (encode(record, metadata_version) for record in records)
    for part in grouped(frames, RECORDS_PER_BATCH):
        yield frame_batch(part, base_offset=offset, epoch=epoch, timestamp_ms=contained_ms or now_ms)
        offset += len(part)
    yield quorum_batch([SnapshotFooterRecord()], timestamp_ms=now_ms, base_offset=offset, leader_epoch=epoch)


def grouped(frames: Iterable[bytes], count_max: int) -> Iterator[list[bytes]]:
    """Frames in groups that each fit into a batch."""
    group: list[bytes] = []
    size_bytes = 0
    for frame in frames:
        if group and (len(group) == count_max or size_bytes + len(frame) > _FRAMES_BYTES_MAX):
            yield group
            group, size_bytes = [], 0
        group.append(frame)
        size_bytes += len(frame)
    if group:
        yield group


def frame_batch(frames: Iterable[bytes], *, base_offset: int, epoch: int, timestamp_ms: int) -> bytearray:
    """One batch of framed metadata records."""
    return build_batch(
        [Record(base_offset + index, timestamp_ms, None, frame) for index, frame in enumerate(frames)],
        base_offset=base_offset,
        leader_epoch=epoch,
    )


def read_checkpoint(data: bytes, name: str, take: Callable[[Message], object] | None = None) -> Checkpoint:
    """What a file holds; MetadataError when it is not whole or not sound.

    With `take` each record is handed over as it is read, and none is kept: those of a large cluster weigh more than
    what is made of them. Whoever takes them throws that away when the file turns out not to be whole.
    """
    records: list[Message] = []
    take = take or records.append
    header = footer = None
    kraft_version, voters = 0, None
    end = 0
    try:
        for position, batch in scan(data):
            if not crc_ok(data, position, batch.size):
                raise MetadataError(f"{name} is damaged: the batch at byte {position} fails its checksum")
            if footer is not None:
                raise MetadataError(f"{name} goes on after its footer")
            end = position + batch.size
            for record in read_records(data, position):
                if not batch.is_control:
                    take(decode(record.value or b""))
                    continue
                control = read_control(record)
                if control is None:
                    continue
                if isinstance(control.message, SnapshotHeaderRecord):
                    header = control.message
                elif isinstance(control.message, SnapshotFooterRecord):
                    footer = control.message
                elif isinstance(control.message, KRaftVersionRecord):
                    kraft_version = control.message.kraft_version
                elif isinstance(control.message, VotersRecord):
                    voters = Voters.read(control.message)
            if header is None:
                raise MetadataError(f"{name} does not begin with a snapshot header")
    except (ProtocolError, BrokerError) as error:
        raise MetadataError(f"{name} is damaged: {error}") from error
    if header is None or footer is None or end != len(data):
        raise MetadataError(f"{name} is not whole")
    return Checkpoint(records, header.last_contained_log_timestamp, kraft_version, voters)
