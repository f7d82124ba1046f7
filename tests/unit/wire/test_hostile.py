"""Bytes from someone who means harm: only ProtocolError comes out, and nothing is allocated for a lie."""

import contextlib
import time
import tracemalloc

import pytest

from ottla.wire.catalog import every_message
from ottla.wire.errors import ProtocolError
from ottla.wire.message import Message
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from ottla.wire.messages.produce import ProduceRequest
from ottla.wire.tags import BUDGET
from ottla.wire.varint import read_varint, varint
from tests.unit.wire.samples import Sampler

HUGE = varint(2**31 - 1)


def refused(cls: type[Message], version: int, data: bytes) -> None:
    with pytest.raises(ProtocolError):
        cls.decoder(version)(data, 0, len(data))
    # The same in a receive buffer, with the next frame behind.
    with pytest.raises(ProtocolError):
        cls.decoder(version)(bytearray(data + bytes(200)), 0, len(data))


@pytest.mark.parametrize("cls", every_message(), ids=lambda cls: cls.__name__)
def test_a_message_cut_anywhere_is_refused(cls: type[Message]) -> None:
    for version in {cls.versions[0], cls.versions[-1]}:
        message = Sampler(7).message(cls, version)
        data = message.encode(version)
        whole = bytearray(data + bytes(64))
        step = max(1, len(data) // 300)
        decode = cls.decoder(version)
        for size in range(0, len(data), step):
            with pytest.raises(ProtocolError):
                decode(data[:size], 0, size)
            with pytest.raises(ProtocolError):
                decode(whole, 0, size)


def test_every_byte_of_a_request_may_be_changed() -> None:
    for cls, version in [
        (ProduceRequest, 9),
        (ProduceRequest, 3),
        (FetchRequest, 17),
        (CreateTopicsRequest, 7),
    ]:
        data = Sampler(1).message(cls, version).encode(version)[:600]
        decode = cls.decoder(version)
        for place in range(len(data)):
            for byte in (0, 1, 0x7F, 0x80, 0xFF):
                changed = data[:place] + bytes([byte]) + data[place + 1 :]
                with contextlib.suppress(ProtocolError):
                    decode(changed, 0, len(changed))


LIES = [
    pytest.param(MetadataRequest, 12, HUGE, id="count of structs"),
    pytest.param(MetadataRequest, 1, b"\x7f\xff\xff\xff", id="count of structs, four bytes"),
    pytest.param(ProduceRequest, 9, HUGE, id="length of a string"),
    pytest.param(
        ProduceRequest,
        9,
        b"\x00\x00\x01\x00\x00\x00\x00\x02\x02t\x02\x00\x00\x00\x00" + HUGE,
        id="length of records",
    ),
    pytest.param(
        FetchRequest,
        7,
        bytes(25) + b"\x00\x00\x00\x00\x00\x00\x00\x01\x00\x01t\x7f\xff\xff\xff",
        id="count of numbers, four bytes",
    ),
    pytest.param(
        MetadataResponse,
        12,
        bytes(4)
        + b"\x01\x00"
        + bytes(4)
        + b"\x02"
        + bytes(2)
        + b"\x01"
        + bytes(17)
        + b"\x02"
        + bytes(14)
        + HUGE,
        id="count of numbers",
    ),
    pytest.param(ApiVersionsRequest, 3, b"\x01\x01" + HUGE, id="count of tags"),
    pytest.param(ApiVersionsRequest, 3, b"\x01\x01\x01\x05" + HUGE, id="length of a tag"),
    pytest.param(
        CreateTopicsRequest, 7, b"\x7e" + b"\x02t\x00\x00\x00\x00\x00\x00\x7e" * 3 + HUGE, id="nested counts"
    ),
]


@pytest.mark.parametrize(("cls", "version", "data"), LIES)
def test_a_lie_about_a_size_allocates_nothing(cls: type[Message], version: int, data: bytes) -> None:
    refused(cls, version, data)  # Compiles the decoder, which allocates honestly.
    buf = bytearray(data + bytes(100))
    decode = cls.decoder(version)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            decode(buf, 0, len(data))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20_000


def test_numbers_are_not_read_from_the_next_frame() -> None:
    """The count fits the receive buffer, but not the frame."""
    lead = bytes(4) + b"\x01\x00" + bytes(4) + b"\x02" + bytes(2) + b"\x01" + bytes(17) + b"\x02" + bytes(14)
    data = lead + varint(100_001)
    buf = bytearray(data + bytes(1_000_000))
    decode = MetadataResponse.decoder(12)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError, match="100000 elements announced"):
            decode(buf, 0, len(data))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20_000


def test_a_count_is_held_against_the_bytes_left_before_the_elements_are_read() -> None:
    """A megabyte of topics, and a count that asks for one more than it can hold."""
    topic = bytes(16) + b"\x00\x00"
    data = varint(50_000 + 2) + topic * 50_000
    decode = MetadataRequest.decoder(12)
    with pytest.raises(ProtocolError, match="50001 elements announced"):
        decode(data, 0, len(data))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x80\x80\x80\x80\x80\x01", id="six bytes"),
        pytest.param(b"\x80\x80\x80\x80\x10", id="33 bits"),
        pytest.param(b"\xff\xff\xff\xff\x0f", id="negative in Kafka"),
    ],
)
def test_a_varint_beyond_31_bits_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_varint(data, 0)
    refused(MetadataRequest, 12, data)
    refused(ProduceRequest, 9, data)
    refused(ProduceRequest, 9, b"\x00\x00\x01\x00\x00\x00\x00\x02\x02t\x02\x00\x00\x00\x00" + data)


@pytest.mark.parametrize("value", [0, 1, 127, 128, 16383, 16384, 2**21, 2**28, 2**31 - 1])
def test_varints_are_inverse(value: int) -> None:
    assert read_varint(b"xx" + varint(value), 2) == (value, 2 + len(varint(value)))


def test_text_that_is_not_utf8_is_refused() -> None:
    refused(ApiVersionsRequest, 3, b"\x03\xff\xfe\x01\x00")


def with_tags(*tags: tuple[int, bytes]) -> bytes:
    return (
        b"\x01\x01"
        + varint(len(tags))
        + b"".join(varint(tag) + varint(len(data)) + data for tag, data in tags)
    )


def test_unknown_tags_are_kept_and_written_again() -> None:
    data = with_tags((4, b"four"), (300, b""))
    request = ApiVersionsRequest.decode(data, 3)
    assert request.unknown_tags == {4: b"four", 300: b""}
    assert request.encode(3) == data


@pytest.mark.parametrize(
    "tags", [((4, b"a"), (4, b"b")), ((4, b"a"), (3, b"b"))], ids=["twice", "descending"]
)
def test_tags_out_of_order_are_refused(tags: tuple[tuple[int, bytes], ...]) -> None:
    refused(ApiVersionsRequest, 3, with_tags(*tags))


def test_unknown_tags_have_a_budget() -> None:
    fields_max, bytes_max = BUDGET
    assert ApiVersionsRequest.decode(with_tags(*((n, b"") for n in range(fields_max))), 3).unknown_tags
    refused(ApiVersionsRequest, 3, with_tags(*((n, b"") for n in range(fields_max + 1))))
    assert ApiVersionsRequest.decode(with_tags((1, bytes(bytes_max))), 3).unknown_tags
    refused(ApiVersionsRequest, 3, with_tags((1, bytes(bytes_max)), (2, b"x")))


def test_the_budget_is_that_of_the_whole_message() -> None:
    topic = bytes(16) + b"\x02t" + b"\x01\x07\x00"
    fields_max = BUDGET[0]
    tail = b"\x00\x00\x00"

    def request(topics: int) -> bytes:
        return varint(topics + 1) + topic * topics + tail

    assert len(MetadataRequest.decode(request(fields_max), 12).topics or ()) == fields_max
    refused(MetadataRequest, 12, request(fields_max + 1))


def test_a_frame_ends_where_it_ends() -> None:
    """A message that would run into the next frame is refused, however well it reads."""
    data = ApiVersionsRequest(client_software_name="name", client_software_version="1").encode(3)
    buf = bytearray(data)
    for end in range(len(data)):
        with pytest.raises(ProtocolError):
            ApiVersionsRequest.decoder(3)(buf, 0, end)
    assert ApiVersionsRequest.decoder(3)(buf, 0, len(data))[1] == len(data)


def test_time_grows_with_the_bytes_and_not_with_their_claims() -> None:
    data = (b"\x7e" + b"\x02t" + b"\x7e") * 20_000
    started = time.perf_counter()
    for cls, version in [
        (CreateTopicsRequest, 7),
        (FetchRequest, 12),
        (ProduceRequest, 9),
        (MetadataResponse, 12),
    ]:
        with pytest.raises(ProtocolError):
            cls.decoder(version)(data, 0, len(data))
    assert time.perf_counter() - started < 5
