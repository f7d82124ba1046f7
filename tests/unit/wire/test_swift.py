"""S1, S2: what the compiled decoder reads itself, what it leaves to the other, and that it keeps nothing."""

import gc
import sys
from typing import Any

import pytest

from ottla.wire.compiling import compile_codec
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.metadata import MetadataResponse
from ottla.wire.messages.produce import ProduceRequest, ProduceResponse
from ottla.wire.swift import IS_HERE, swift_decoder
from tests.unit.wire.samples import Sampler

pytestmark = pytest.mark.skipif(
    not IS_HERE, reason="ottla.wire._swift was not built: there was no C compiler"
)


def alone(cls: Any, version: int) -> Any:
    """The compiled decoder, with nobody to leave anything to."""
    return swift_decoder(cls, version, lambda buf, pos, end: "left")


def plain(**more: Any) -> ProduceRequest:
    topic = ProduceRequest.TopicProduceData
    parts = [topic.PartitionProduceData(index=n, records=bytes([n]) * 300) for n in range(3)]
    return ProduceRequest(acks=-1, topic_data=[topic(name="t", partition_data=parts)], **more)


@pytest.mark.parametrize("version", [3, 8, 9, 12])
def test_a_plain_message_is_read_here(version):
    message = plain(transactional_id="täglich")
    data = b"before" + message.encode(version) + b"behind"
    for buf in (data, bytearray(data), memoryview(data)):
        assert alone(ProduceRequest, version)(buf, 6, len(data) - 6) == (message, len(data) - 6)


def test_records_are_views_that_keep_their_buffer():
    data = bytearray(plain().encode(9))
    message, _ = alone(ProduceRequest, 9)(data, 0, len(data))
    views = [part.records for part in message.topic_data[0].partition_data]
    del message
    assert [(type(view), len(view), view.nbytes, bytes(view)) for view in views] == [
        (memoryview, 300, 300, bytes([n]) * 300) for n in range(3)
    ]
    assert bytes(views[1][10:20]) == b"\x01" * 10
    with pytest.raises(BufferError):
        data.append(0)
    for view in views:
        view.release()
    data.append(0)


@pytest.mark.parametrize(
    "data",
    [
        plain(unknown_tags={9: b"x"}).encode(9),
        plain(transactional_id="x").encode(9).replace(b"\x02x", b"\x02\xff"),
        plain().encode(9)[:-1],
        b"\x00\xff\xff\x00\x00\x00\x00\x00\x00",
    ],
    ids=["a tag", "no UTF-8", "cut", "null"],
)
def test_all_else_is_left_to_the_other(data):
    assert alone(ProduceRequest, 9)(data, 0, len(data)) == "left"


@pytest.mark.parametrize(("pos", "end"), [(-1, 5), (3, 2), (0, 10_000)])
def test_a_place_outside_the_buffer(pos, end):
    assert alone(ProduceRequest, 9)(plain().encode(9), pos, end) == "left"


def test_a_long_array():
    nodes = list(range(5_000))
    made = MetadataResponse.MetadataResponseTopic.MetadataResponsePartition
    parts = [made(partition_index=n, replica_nodes=nodes if n == 7 else []) for n in range(3_000)]
    message = MetadataResponse(topics=[MetadataResponse.MetadataResponseTopic(name="t", partitions=parts)])
    data = message.encode(12)
    assert alone(MetadataResponse, 12)(data, 0, len(data)) == (message, len(data))


@pytest.mark.parametrize("cls", [ProduceRequest, ProduceResponse, FetchRequest, FetchResponse])
def test_nothing_is_kept(cls):
    """Neither of what is read, nor of what is begun and then left."""
    version = 9 if "Produce" in cls.__name__ else 12
    data = bytearray(Sampler(1).message(cls, version).encode(version))
    decode = swift_decoder(cls, version, compile_codec(cls, "decoder", version))
    cut = bytearray(data[:-1])
    for _ in range(3):  # whatever is made once
        decode(data, 0, len(data))
        alone(cls, version)(cut, 0, len(cut))
    gc.collect()
    before = len(gc.get_objects()), sys.getrefcount(data), sys.getrefcount(cls), sys.getrefcount(None)
    left = alone(cls, version)
    for _ in range(200):
        decode(data, 0, len(data))
        left(cut, 0, len(cut))
    del left
    gc.collect()
    after = len(gc.get_objects()), sys.getrefcount(data), sys.getrefcount(cls), sys.getrefcount(None)
    assert abs(after[0] - before[0]) < 20
    assert after[1:3] == before[1:3]
    assert abs(after[3] - before[3]) < 100


def test_what_is_no_plan():
    from ottla.wire._swift import Reader

    with pytest.raises(TypeError, match="no slot"):
        Reader((ProduceRequest, True, 1, (("nonsense", 3, False, False, False, None),)), print, 9)
    with pytest.raises(ValueError, match="no kind"):
        Reader((ProduceRequest, True, 1, (("acks", 99, False, False, False, None),)), print, 9)
    with pytest.raises(TypeError):
        Reader(plain(), print, 9)
