"""The newest record of a partition, for a consumer that waits for nothing else: bytes that go out as they are.

Who reads at the end of a log mostly waits in a Fetch for one partition, or in a session in which one has grown, and
what it is owed is the small batch that was appended just now and is still in memory. The common road fills a part of a
message with it and has that encoded; here the same bytes come from one `pack`. What it bought is in
docs/adr/0022-the-short-way-to-a-reader.md.

N1  Whatever is not of that form is left alone, for the common road: other batches, open transactions, older versions,
    epochs that differ, a log that refuses, begins later, or has followers that are behind.
"""

import struct
from typing import Any

from ottla.broker.api import Pending
from ottla.broker.fetch_session import Wanted
from ottla.partition.partition import Partition

# From v13 on, where topics go by their ids: size, correlation id, tags of the header, throttle time, error, session,
# topics, id of the topic, partitions, index, error, high watermark, last stable offset, start offset, aborted
# transactions, preferred replica.
_HEAD = struct.Struct(">iiBihiB16sBihqqqBi")
_pack = _HEAD.pack
_FIXED_BYTES = _HEAD.size - 4 + 3  # behind the size, and with what stands behind the records
_ONE = 2  # as a compact array counts
_NULL, _EMPTY = 0, 1
_NOBODY = -1
_NO_TAGS = b"\0\0\0"  # of the partition, the topic and the answer


def newest(
    wanted: Wanted, partition: Partition, committed: bool, pending: Pending, session_id: int = 0
) -> list[Any] | None:
    """Return the whole answer, or None when it is one for the common road."""
    log = partition.log
    offset, epoch = wanted.offset, wanted.leader_epoch
    records = log.newest(offset)
    end_offset = log.end_offset
    if (
        records is None
        or partition.high_watermark != end_offset
        or partition.refusal is not None
        or (epoch >= 0 and epoch != partition.leader_epoch)
        or wanted.fetched_epoch >= 0
        or offset < log.start_offset
        or pending.connection is None  # somebody within this process, who wants a message
    ):
        return None
    length = len(records) + 1
    size = bytes((length,)) if length < 128 else bytes((length & 127 | 128, length >> 7))
    topic, index = wanted.key
    head = _pack(
        _FIXED_BYTES + len(size) + length - 1,
        pending.correlation_id,
        0,
        0,
        0,
        session_id,
        _ONE,
        topic,
        _ONE,
        index,
        0,
        end_offset,
        end_offset,
        log.start_offset,
        _EMPTY if committed else _NULL,
        _NOBODY,
    )
    partition.fetch_requests += 1
    partition.bytes_out += len(records)
    return [head + size + records + _NO_TAGS]
