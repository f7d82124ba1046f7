"""Files of record batches: `.log`, and the checkpoints of the metadata quorum.

What is checked: that batches lie one behind the other to the end, that offsets grow, that a checksum is right, and that
the records of a batch can be read and are as many as it says.
"""

from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from ottla.cli.amount import moment_text
from ottla.cli.dump.finding import Findings, Found, Problem
from ottla.cli.dump.meaning import Meaning, raw
from ottla.cli.dump.plain import plain
from ottla.wire.batch import BATCH_HEADER_SIZE, Batch, crc_ok, read_records
from ottla.wire.control import read_control
from ottla.wire.errors import BrokerError, ProtocolError
from ottla.wire.record import Record

BATCH_BYTES_MAX = 1 << 30
# What is looked through of one batch, so that a tool needs no memory that a broker would not.
RECORDS_BYTES_MAX = 256 << 20
RECORDS_MAX = 4 << 20


class Depth(NamedTuple):
    """How much to show of a batch: its records or not, their content or not, and what they mean."""

    records: bool = False
    values: bool = False
    meaning: Meaning | None = None


def read_batches(file: IO[bytes], size: int) -> Iterator[tuple[int, Batch, bytes] | Problem]:
    """Yield each batch with its position and bytes; a Problem is the last that comes."""
    position = 0
    while position < size:
        head = file.read(BATCH_HEADER_SIZE)
        try:
            batch = Batch.parse(head)
        except (ProtocolError, BrokerError) as error:
            yield Problem(f"at {position}: {error}")
            return
        if batch.size > min(size - position, BATCH_BYTES_MAX):
            yield Problem(f"at {position}: a batch of {batch.size} bytes is cut off after {size - position}")
            return
        yield position, batch, head + file.read(batch.size - BATCH_HEADER_SIZE)
        position += batch.size


def dump_batches(file: IO[bytes], size: int, base_offset: int, depth: Depth) -> Findings:
    """Yield every batch, its records where they are asked for, and what is wrong with either."""
    expected = base_offset
    for each in read_batches(file, size):
        if isinstance(each, Problem):
            yield each
            return
        position, batch, data = each
        yield Found("batch", _batch_fields(position, batch))
        if batch.base_offset < expected:
            yield Problem(f"at {position}: offset {batch.base_offset} comes where at least {expected} should")
        expected = batch.end_offset
        if not crc_ok(data, 0, len(data)):
            yield Problem(f"at {position}: the checksum of the batch at offset {batch.base_offset} is wrong")
        yield from _dump_records(position, batch, data, depth)


def _batch_fields(position: int, batch: Batch) -> dict[str, Any]:
    notes = [
        name
        for name, is_so in (
            ("transactional", batch.is_transactional),
            ("control", batch.is_control),
            ("log-append-time", batch.is_log_append_time),
            ("delete-horizon", batch.has_delete_horizon),
        )
        if is_so
    ]
    codec = batch.attributes & 7
    return {
        "base_offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "count": batch.record_count,
        "position": position,
        "size": batch.size,
        "codec": ("none", "gzip", "snappy", "lz4", "zstd")[codec] if codec < 5 else str(codec),
        "leader_epoch": batch.partition_leader_epoch,
        "base_timestamp": batch.base_timestamp,
        "max_timestamp": batch.max_timestamp,
        "time": moment_text(batch.max_timestamp),
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "last_sequence": batch.last_sequence,
        "crc": batch.crc,
        "notes": notes,
    }


def _dump_records(position: int, batch: Batch, data: bytes, depth: Depth) -> Findings:
    try:
        if batch.record_count > RECORDS_MAX:
            raise ProtocolError(f"{batch.record_count} records, more than are looked through")
        records = read_records(data, size_bytes_max=RECORDS_BYTES_MAX)
    except ProtocolError as error:
        yield Problem(f"at {position}: the records of the batch at offset {batch.base_offset}: {error}")
        return
    last = batch.base_offset - 1
    for record in records:
        if not last < record.offset <= batch.last_offset:
            yield Problem(
                f"at {position}: offset {record.offset} comes behind {last}, in a batch to {batch.last_offset}"
            )
        last = record.offset
        if depth.records:
            yield Found("record", _record_fields(record, batch, depth))


def _record_fields(record: Record, batch: Batch, depth: Depth) -> dict[str, Any]:
    found: dict[str, Any] = {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "time": moment_text(record.timestamp),
        "key_size": -1 if record.key is None else len(record.key),
        "value_size": -1 if record.value is None else len(record.value),
        "header_count": len(record.headers),
    }
    if batch.is_control:
        return found | _control(record)
    if depth.meaning is not None:
        return found | depth.meaning(record)
    return found | raw(record) if depth.values else found


def _control(record: Record) -> dict[str, Any]:
    try:
        control = read_control(record)
    except ProtocolError as error:
        return {"unreadable": str(error)}
    if control is None:
        return {"unreadable": "a control record of a kind not known"}
    return {"type": control.type.name.lower().replace("_", "-"), "data": plain(control.message)}
