"""No number stands in C and in Python without a tie: it is told at run time, or compared here with what it stands for.

Every `#define` of a number in a compiled part has a line. One that is missing, or stands for something else, fails.
"""

import ast
import re
from pathlib import Path

import pytest

import ottla
from ottla.broker import fetch_session
from ottla.broker import newest as newest_module
from ottla.broker.lane import NUMBERS as LANE_NUMBERS
from ottla.channel import connection, swift
from ottla.log import segment, tail
from ottla.wire import batch, record, record_walk, varint
from ottla.wire.batch import BATCH_HEADER_SIZE, build_batch
from ottla.wire.message import fields_of
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.produce import ProduceRequest, ProduceResponse
from ottla.wire.record import Record
from ottla.wire.uuid import METADATA_TOPIC_ID

DEFINE = re.compile(r"^#define (\w+) +([^/\n]*\d[^/\n]*)", re.M)
OF_C_ALONE = {
    "BAD_RECORDS_MAX": "an array is as long; compared with its twin in test_turns.py",
    "DEPTH_MAX": "of nested structs, which only the compiled decoder has a stack for",
    "LIST_AT_ONCE": "how long a list is made before its elements have come",
    "UNHELD_BYTES": "from where on other threads may run meanwhile",
}


def since(struct, name, version="start"):
    """From which version on a struct has a field."""
    (field,) = [each for each in fields_of(struct) if each.name == name]
    return getattr(field.versions, version)


def produce_response():
    topic = ProduceResponse.TopicProduceResponse
    part = topic.PartitionProduceResponse
    return ProduceResponse(responses=[topic(topic_id=bytes(16), partition_responses=[part(record_errors=[])])])


def fetch_request_bytes(*, partitions):
    """The bytes from the time to wait on, in a version that says who follows in a tag."""
    topic = FetchRequest.FetchTopic
    place = topic.FetchPartition()
    topics = [topic(topic_id=bytes(16), partitions=[place])] if partitions else []
    return len(FetchRequest(topics=topics).encode(15))


def batch_header(**fields):
    """Where in the header of a batch a field differs, whose lowest bit is set."""
    whole = batch.Batch.parse(build_batch([Record(0, 0, b"k", b"v", ())]))
    plain, changed = (batch.BATCH_HEADER.pack(*(whole._replace(**each)[:13])) for each in ({}, fields))
    return next(at for at in range(BATCH_HEADER_SIZE) if plain[at] != changed[at])


TIES = {
    # Of batches.
    "HEADER_BYTES": BATCH_HEADER_SIZE,
    "BATCH_BYTES_MIN": BATCH_HEADER_SIZE,
    "LOG_OVERHEAD": batch.LOG_OVERHEAD,
    "CRC_FROM": batch.CRC_FROM,
    "ATTRIBUTES_AT": batch.CRC_FROM + 1,  # the lower of the two bytes behind the checksum
    "NOT_PLAIN": batch.LOG_APPEND_TIME | batch.CONTROL,
    "CODEC_BITS": batch.CODEC_MASK,
    "TRANSACTIONAL": batch.TRANSACTIONAL,
    "NO_TIMESTAMP": batch.NO_TIMESTAMP,
    "SEQUENCE_MAX": batch.SEQUENCE_MAX,
    "RELATIVE_OFFSET_MAX": segment.RELATIVE_OFFSET_MAX,
    # Of records and strings.
    "VARINT_SHIFT_MAX": record._VARINT_SHIFT_MAX,
    "VARLONG_SHIFT_MAX": record._VARLONG_SHIFT_MAX,
    "STRING_BYTES_MAX": varint.STRING_BYTES_MAX,
    # Of frames.
    "SIZE_BYTES": connection._SIZE.size,
    "ID_BYTES": len(METADATA_TOPIC_ID),
    "ONE": newest_module._ONE,
    "NONE": newest_module._ONE - 1,
    # Of Produce.
    "PRODUCE": ProduceRequest.api_key,
    "PRODUCE_SINCE": ProduceRequest.flexible,
    "PRODUCE_BY_ID_SINCE": since(ProduceRequest.TopicProduceData, "topic_id"),
    # Of Fetch.
    "FETCH": FetchRequest.api_key,
    "FETCH_SINCE": since(FetchRequest.FetchTopic, "topic_id"),
    "NO_REPLICA_SINCE": since(FetchRequest, "replica_state"),
    "HINTS_SINCE": since(FetchResponse, "node_endpoints"),
    "FETCH_BYTES": fetch_request_bytes(partitions=1),
    "SILENT_BYTES": fetch_request_bytes(partitions=0),
    "SESSION_EPOCH_MAX": fetch_session._EPOCH_MAX,
    "NEWEST_HEAD_BYTES": newest_module._HEAD.size,
    "TWO_BYTE_LENGTH_MAX": (1 << 14) - 2,
}


def sources():
    root = Path(ottla.__file__).parent
    return [*root.glob("*/_*.c"), *root.glob("*/_*.h")]


def defined():
    return [found for path in sources() for found in DEFINE.findall(path.read_text())]


def test_every_number_in_c_has_a_tie():
    names = {name for name, _ in defined()}
    produced = {"PRODUCED_HEAD_BYTES", "PRODUCED_PART_BYTES"}
    assert len(sources()) > 5 and not names & {*swift.NUMBERS, *LANE_NUMBERS}
    assert names == TIES.keys() | OF_C_ALONE.keys() | produced
    for name, text in defined():
        if name in TIES:
            value = eval(compile(ast.parse(text.strip(), mode="eval"), name, "eval"), {})
            assert value == TIES[name], name


@pytest.mark.parametrize("version", range(TIES["PRODUCE_SINCE"], 14))
def test_an_answer_to_a_produce_has_the_length_that_c_writes(version):
    """What leads to the name or id of its one topic, and what follows that."""
    numbers = dict(defined())
    head, part = int(numbers["PRODUCED_HEAD_BYTES"]), int(numbers["PRODUCED_PART_BYTES"])
    response = produce_response()
    response.responses[0].name = ""
    size = 4 + 4 + 1 + len(response.encode(version))  # of the frame, the correlation id, tags
    assert size == head + part + (16 if version >= 13 else 1)


def test_python_has_each_of_them_once():
    assert record_walk._VARINT_SHIFT_MAX == record._VARINT_SHIFT_MAX
    assert record_walk._VARLONG_SHIFT_MAX == record._VARLONG_SHIFT_MAX


def test_the_newest_batch_has_a_length_of_two_bytes_at_most():
    """`newest.py` and `_newest.h` write no more, and no tail keeps a longer one at hand."""
    assert tail.NEWEST_BYTES_MAX <= TIES["TWO_BYTE_LENGTH_MAX"]


def test_the_attributes_of_a_batch_are_where_they_are_looked_for():
    assert batch_header(attributes=1) == TIES["ATTRIBUTES_AT"]
