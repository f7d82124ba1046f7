"""G1, G2, R1 and S1: a decoder that guesses, or is compiled, gives what a plain one would, whatever the bytes."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from ottla.wire import decoding
from ottla.wire.catalog import every_message
from ottla.wire.compiling import compile_codec, source_of
from ottla.wire.errors import ProtocolError
from ottla.wire.field import Field
from ottla.wire.message import Message, Struct, fields_of
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.metadata import MetadataResponse
from ottla.wire.messages.produce import ProduceRequest, ProduceResponse
from ottla.wire.run import NUMBERS_MAX, SHAPES_MAX, run_of
from ottla.wire.swift import IS_HERE, swift_decoder
from tests.unit.wire.samples import Sampler

Decoder = Callable[[Any, int, int], tuple[Any, int]]


def without_guesses(cls: type[Message], version: int) -> Decoder:
    """The general decoder alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "write_lone", lambda *_: None)
        patch.setattr(decoding, "run_of", lambda *_: None)
        patch.setattr(decoding, "ROWS_LEVEL", 99)
        return compile_codec(cls, "decoder", version)


def outcome(decode: Decoder, buf: bytes | bytearray, end: int) -> object:
    try:
        return decode(buf, 0, end)
    except ProtocolError:
        return "refused"


class Plain(Sampler):
    """Messages as the guesses expect them: `rows` elements in each array, all alike, and nothing optional."""

    def __init__(self, seed: int, rows: int) -> None:
        super().__init__(seed)
        self.rows = rows

    def struct(self, cls: type[Struct], version: int, level: int = 0) -> Any:
        values: dict[str, Any] = {}
        arrays = 0
        for field in fields_of(cls):
            if version not in field.versions or field.tag is not None:
                continue
            if field.array and field.is_struct:
                arrays += 1
                held = self.rows if arrays == 1 and level < 2 else 0
                values[field.name] = [self.struct(field.kind, version, level + 1) for _ in range(held)]
            elif field.array:
                values[field.name] = [self.value(field, version) for _ in range(2)]
            elif field.is_struct:
                values[field.name] = self.struct(field.kind, version, 2)
            elif version in field.nullable and field.kind.name == "string":
                values[field.name] = field.default
            elif arrays and field.kind.name == "string":
                values[field.name] = ""
            else:
                values[field.name] = self.value(field, version)
        return cls(**values)

    def value(self, field: Field, version: int) -> Any:
        if field.is_struct:
            return self.struct(field.kind, version, 2)
        if field.kind.name in ("string", "bytes", "records"):
            text = "t" * self.random.choice((0, 1, 5))
            return text if field.kind.name == "string" else text.encode()
        return super().value(field, version)


def guessing(cls: type[Message], version: int) -> Decoder:
    """The decoder in Python."""
    return compile_codec(cls, "decoder", version)


def swift(cls: type[Message], version: int) -> Decoder:
    """The decoder in C, and behind it one that asks nobody."""
    return swift_decoder(cls, version, without_guesses(cls, version))


@pytest.mark.parametrize("made", [guessing, swift])
@pytest.mark.parametrize("cls", every_message(), ids=lambda cls: cls.__name__)
def test_a_guess_changes_nothing(cls: type[Message], made: Callable[[type[Message], int], Decoder]) -> None:
    """Right guesses, and each of them broken in turn: a byte changed, the end cut."""
    if made is swift and not IS_HERE:
        pytest.skip("ottla.wire._swift was not built: there was no C compiler")
    chance = random.Random(5)
    for version in {cls.versions[0], cls.versions[-1], chance.choice(cls.versions)}:
        decode, general = made(cls, version), without_guesses(cls, version)
        for sampler in (Plain(3, 1), Plain(3, 4), Sampler(4)):
            message = sampler.message(cls, version)
            data = message.encode(version)
            assert decode(data, 0, len(data)) == (message, len(data)) == general(data, 0, len(data))
            places = range(len(data)) if len(data) < 90 else chance.sample(range(len(data)), 90)
            for place in places:
                byte = chance.choice((0, 1, 2, 3, 0x7F, 0x80, 0xFF))
                changed = bytearray(data[:place] + bytes([byte]) + data[place + 1 :] + bytes(80))
                assert outcome(decode, changed, len(data)) == outcome(general, changed, len(data))
                cut = bytearray(data[:place])
                assert outcome(decode, cut, place) == outcome(general, cut, place)
                assert outcome(decode, changed, place) == outcome(general, changed, place)


@pytest.mark.parametrize(
    ("cls", "version"),
    [
        (ProduceRequest, 9),
        (ProduceRequest, 13),
        (ProduceResponse, 9),
        (FetchRequest, 12),
        (FetchResponse, 12),
    ],
)
def test_a_message_of_one_partition_is_read_by_the_guess(cls: type[Message], version: int) -> None:
    """The general part is taken away, and the message is still read."""
    source = decoding.decoder_source(cls, version)
    text = source.text()
    general = text.index("\n    try:\n")
    names = dict(source.names)
    exec(text[:general] + "\n    return None, 0\n", names)
    message = Plain(1, 1).message(cls, version)
    data = message.encode(version)
    assert names["decode"](data, 0, len(data)) == (message, len(data))


@pytest.mark.parametrize("size", [1, 126, 127, 128, 16382, 16383, 2_000_000, 2_097_151, 2_097_152])
def test_records_of_every_length_of_length(size: int) -> None:
    topic = ProduceRequest.TopicProduceData
    for version in (3, 9):
        partition = topic.PartitionProduceData(index=1, records=bytes(size))
        message = ProduceRequest(acks=1, topic_data=[topic(name="t", partition_data=[partition])])
        assert ProduceRequest.decode(message.encode(version), version) == message


def partition(index: int, replicas: int, isr: int, **values: Any) -> Any:
    made = MetadataResponse.MetadataResponseTopic.MetadataResponsePartition
    nodes = [index * 10 + node for node in range(replicas)]
    return made(partition_index=index, replica_nodes=nodes, isr_nodes=nodes[:isr], **values)


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(partition(9, 3, 2), id="an array is shorter"),
        pytest.param(partition(9, 4, 2), id="one array is longer, one shorter"),
        pytest.param(partition(9, 3, 3, offline_replicas=[7]), id="an array is not empty"),
        pytest.param(partition(9, 3, 3, unknown_tags={5: b"x"}), id="a tagged field"),
    ],
)
@pytest.mark.parametrize("place", [0, 1, 5])
def test_a_row_unlike_the_others(odd: Any, place: int) -> None:
    rows = [partition(index, 3, 3) for index in range(5)]
    rows.insert(place, odd)
    message = MetadataResponse(topics=[MetadataResponse.MetadataResponseTopic(name="t", partitions=rows)])
    assert MetadataResponse.decode(message.encode(12), 12) == message


def test_shapes_are_learnt_up_to_a_limit() -> None:
    """Whoever sends every shape there is fills no memory with readers."""
    cls = MetadataResponse.MetadataResponseTopic.MetadataResponsePartition
    run = run_of(cls, 12, True)
    assert run is not None
    read = run.reader()
    shapes = [(replicas, isr) for replicas in range(NUMBERS_MAX + 2) for isr in range(replicas + 1)]
    for replicas, isr in shapes:
        rows = [partition(index, replicas, isr) for index in range(4)]
        topic = MetadataResponse.MetadataResponseTopic(name="", partitions=rows)
        data = MetadataResponse(topics=[topic]).encode(12)
        found = read(data, 32, len(data), 4)
        assert found is None or found[0] == rows
    assert len(run.readers) == SHAPES_MAX


def test_the_guess_can_be_read() -> None:
    text = source_of(ProduceRequest, "decoder", 9)
    assert "n2, o1.acks, o1.timeout_ms, n3, n5 = unpack_from_BhiBB(buf, pos)" in text


@pytest.mark.parametrize("count", [None, 0, 1, 2, 5, 130])
def test_an_array_inside_a_row_may_hold_something(count: int | None) -> None:
    topic = FetchResponse.FetchableTopicResponse
    aborted = None
    if count is not None:
        aborted = [
            topic.PartitionData.AbortedTransaction(producer_id=n, first_offset=n) for n in range(count)
        ]
    full = topic.PartitionData(aborted_transactions=aborted, preferred_read_replica=4, records=bytes(300))
    quiet = topic.PartitionData(aborted_transactions=[], preferred_read_replica=5, records=b"r")
    for partitions in ([full], [quiet, full], [full, quiet]):
        message = FetchResponse(responses=[topic(topic="t", partitions=partitions)])
        for version in (11, 12):
            assert FetchResponse.decode(message.encode(version), version) == message
