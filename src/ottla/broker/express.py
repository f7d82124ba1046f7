"""The express lane: a Produce with one batch for one partition, from its bytes to the bytes of its answer.

A producer that sends one record at a time sends requests of this form. The common road makes three objects of such a
request and three of its answer; here the fields go from two `unpack` into `Partition.append`, and from there into one
`pack`. What it bought is in docs/adr/0022-the-short-way-to-a-reader.md.

X1  Whatever is not of that form is left alone, for the common road: several topics or partitions, tagged fields,
    transactions, acks=0, partitions that are not awake or of internal topics, requests before v9.
X2  A batch that is refused goes the common road as well, which refuses it again, in the right words: `Log.append` has
    left its bytes as they came. So does one that takes a thread to look through.
"""

import struct
from typing import Any

from ottla.broker.api import Pending
from ottla.broker.apis.metadata import INTERNAL_TOPICS
from ottla.broker.broker import Broker
from ottla.broker.durable import Durable, Part
from ottla.log.inspection import PostponedError
from ottla.partition.partition import Partition
from ottla.wire.errors import BrokerError
from ottla.wire.messages.produce import ProduceResponse

_SINCE = 9  # the first flexible version
_BY_ID_SINCE = 13

_read_head = struct.Struct(
    ">BhiBB"
).unpack_from  # transactional id, acks, timeout, topics, length of the name
_read_part = struct.Struct(
    ">BiBBB"
).unpack_from  # partitions, index, length of the records in one to three bytes
_write_head = struct.Struct(">iiBB").pack  # size, correlation id, tags of the header, topics
# Partitions, index, error, base offset, append time, start offset, record errors, error message, tags of the partition
# and of the topic, throttle time, tags.
_PART = struct.Struct(">BihqqqBBBBiB")
_write_part = _PART.pack
_FIXED_BYTES = 6 + _PART.size  # behind the size
_HEAD_BYTES = 8  # of a request, up to where the name begins with its length
_ID_BYTES = 16
_ONE = 2  # as a compact array counts
_NO_TAGS = b"\0\0\0"  # of the partition, the topic and the request
_ATTRIBUTES_AT = 22
_TRANSACTIONAL = 0x10
_BATCH_BYTES_MIN = 61

Topic = ProduceResponse.TopicProduceResponse


def express(
    buffer: bytearray, position: int, end: int, correlation_id: int, version: int, broker: Broker
) -> list[Any] | Pending | None:
    """Append and answer; a Pending when it has to wait, None when the request is one for the common road."""
    if version < _SINCE:
        return None
    try:
        transactional_id, acks, _, topics, length = _read_head(buffer, position)
        if transactional_id or topics != _ONE or not (acks == 1 or acks == -1):
            return None
        start = position + _HEAD_BYTES
        stop = start + (length if version < _BY_ID_SINCE else _ID_BYTES)
        partitions, index, size, second, third = _read_part(buffer, stop)
        if partitions != _ONE:
            return None
        if size < 128:
            begin = stop + 6
        elif second < 128:
            size += (second << 7) - 128
            begin = stop + 7
        elif third < 128:
            size += (second << 7) + (third << 14) - 16512
            begin = stop + 8
        else:
            return None
        beyond = begin + size - 1
        if size <= _BATCH_BYTES_MIN or beyond + 3 != end or buffer[beyond:end] != _NO_TAGS:
            return None
        if buffer[begin + _ATTRIBUTES_AT] & _TRANSACTIONAL:
            return None
        name = buffer[start:stop]
        if version < _BY_ID_SINCE:
            if not 1 < length < 128:
                return None
            partition = broker.table.partitions.get((name[1:].decode(), index))
        else:
            partition = broker.table.awake_by_id.get((bytes(name), index))
        if partition is None or partition.topic in INTERNAL_TOPICS:
            return None
        if partition.leadership is not None and acks == -1:
            return None  # the common road knows about followers
        base_offset, end_offset, append_time_ms, _ = partition.append(
            memoryview(buffer)[begin:beyond], broker.clock.now_ms()
        )
    except (BrokerError, PostponedError):
        return None
    except (struct.error, IndexError, UnicodeDecodeError):
        return None
    partition.produce_requests += 1
    if end_offset > partition.durable_offset:
        part = Part(index=index, base_offset=base_offset, log_append_time_ms=append_time_ms)
        return once_durable(partition, name, part, end_offset, acks, version)
    start_offset = partition.log.start_offset
    tail = _write_part(_ONE, index, 0, base_offset, append_time_ms, start_offset, 1, 0, 0, 0, 0, 0)
    return [_write_head(_FIXED_BYTES + len(name), correlation_id, 0, _ONE) + name + tail]


def once_durable(
    partition: Partition, name: bytes | bytearray, part: Part, end_offset: int, acks: int, version: int
) -> Pending:
    """The answer to be given once the disk has all below `end_offset`; the topic is named as in the request."""
    part.log_start_offset = partition.log.start_offset
    topic = Topic(topic_id=bytes(name)) if version >= _BY_ID_SINCE else Topic(name=name[1:].decode())
    topic.partition_responses = [part]
    return Durable(ProduceResponse(responses=[topic]), [(partition, end_offset, part)], acks).pending
