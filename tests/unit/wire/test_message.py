"""What a message class does: construction, equality, defaults, and clear words when a version cannot express it."""

import pytest

from ottla.wire.compiling import source_of
from ottla.wire.errors import ErrorCode, ProtocolError
from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from ottla.wire.messages.offset_fetch import OffsetFetchRequest
from ottla.wire.messages.produce import ProduceRequest, ProduceResponse
from ottla.wire.primitive import Bool, Int16, Int32, NullableString, String, Uuid
from ottla.wire.records.consumer_group import ConsumerGroupMemberMetadataValue


class Parcel(Message, api=500, versions="1-4", flexible="3+"):
    """A message of our own, with one of everything the tests below ask about."""

    class Item(Struct):
        name: String
        weight: Int32 = since(2, default=-1)

    sender: String
    note: NullableString = since(1, nullable="2+")
    fragile: Bool = since(2, until=3)
    code: Int16 = since(4, default=7, ignorable=True)
    items: list[Item]
    routes: list[Int32] | None = since(2, default=None)
    seal: Uuid = since(3, tag=0)
    receipt: Item | None = since(3, default=None, tag=2)


def test_every_field_has_its_default() -> None:
    parcel = Parcel()
    assert (parcel.sender, parcel.note, parcel.fragile, parcel.code) == ("", "", False, 7)
    assert (parcel.items, parcel.routes, parcel.seal, parcel.receipt) == ([], None, bytes(16), None)
    assert parcel.unknown_tags is None


def test_defaults_are_not_shared() -> None:
    Parcel().items.append(Parcel.Item())
    assert Parcel().items == []
    first, _ = Parcel.decoder(1)(Parcel().encode(1), 0, 99)
    first.items.append(Parcel.Item())
    assert Parcel.decode(Parcel().encode(1), 1).items == []


def test_a_field_that_is_not_declared_is_refused() -> None:
    with pytest.raises(TypeError):
        Parcel(colour="red")
    with pytest.raises(AttributeError):
        Parcel().colour = "red"  # type: ignore[attr-defined]


def test_messages_are_equal_when_their_fields_are() -> None:
    assert Parcel(sender="a") == Parcel(sender="a")
    assert Parcel(sender="a") != Parcel(sender="b")
    assert Parcel() != Parcel(unknown_tags={9: b""})
    assert Parcel() != Parcel.Item()
    assert repr(Parcel.Item(name="cup")) == "Item(name='cup', weight=-1)"


def test_versions_and_layout() -> None:
    parcel = Parcel(
        sender="me", note=None, items=[Parcel.Item(name="cup", weight=3)], routes=[1, 2], seal=b"s" * 16
    )
    assert parcel.encode(3) == bytes.fromhex(
        "03 6d65"  # sender
        " 00"  # note, null
        " 00"  # fragile
        " 02 04 637570 00000003 00"  # one item and its tags
        " 03 00000001 00000002"  # routes
        " 01 00 10 " + "73" * 16  # one tag: the seal
    )
    assert Parcel(sender="me", note="").encode(1) == bytes.fromhex("0002 6d65 0000 00000000")
    assert Parcel.decode(parcel.encode(3), 3) == parcel


def test_tags_ascend_whether_known_or_not() -> None:
    parcel = Parcel(seal=b"s" * 16, receipt=Parcel.Item(), unknown_tags={1: b"one", 7: b"seven"})
    data = parcel.encode(3)
    tail = data[data.index(b"\x10ssss") - 2 :]
    assert tail[0] == 4
    assert [tail[1], tail[19], tail[24], tail[32]] == [0, 1, 2, 7]
    assert Parcel.decode(data, 3) == parcel


@pytest.mark.parametrize(
    ("parcel", "version", "words"),
    [
        (Parcel(fragile=True), 1, "fragile is not in this version"),
        (Parcel(fragile=True), 4, "fragile is not in this version"),
        (Parcel(items=[Parcel.Item(), Parcel.Item(weight=2)]), 1, "items[1].weight is not in this version"),
        (Parcel(routes=[]), 1, "routes is not in this version"),
        (Parcel(seal=b"x" * 16), 2, "seal is not in this version"),
        (Parcel(note=None), 1, "note must not be null"),
        (Parcel(sender=None), 3, "sender must not be null"),
        (Parcel(items=None), 3, "items must not be null"),
        (Parcel(items=[None]), 3, "items[0] must be Item"),
        (Parcel(items=[Parcel.Item(weight=2**31)]), 3, "items[0].weight must be an int32"),
        (Parcel(items=[Parcel.Item(weight=None)]), 3, "items[0].weight must not be null"),
        (Parcel(sender="x" * 32768), 1, "sender is longer than 32767 bytes"),
        (Parcel(sender="x" * 32768), 3, "sender is longer than 32767 bytes"),
        (Parcel(sender=b"me"), 3, "sender must be a str"),
        (Parcel(seal="text"), 3, "seal must be bytes"),
        (Parcel(routes=[1, "2"]), 3, "routes[1] must be an int32"),
        (Parcel(unknown_tags={5: b""}), 2, "unknown_tags needs a flexible version"),
    ],
)
def test_what_a_version_cannot_express_is_named(parcel: Parcel, version: int, words: str) -> None:
    with pytest.raises(ProtocolError, match="Parcel v") as caught:
        parcel.encode(version)
    assert words in str(caught.value)
    out = bytearray(b"before")
    with pytest.raises(ProtocolError):
        Parcel.encoder(version)(parcel, out)
    assert out == b"before"


def test_an_ignorable_field_is_left_out() -> None:
    assert Parcel.decode(Parcel(code=9).encode(3), 3).code == 7
    assert Parcel.decode(Parcel(code=9).encode(4), 4).code == 9


@pytest.mark.parametrize("version", [0, 5, -1])
def test_a_version_that_is_not_there(version: int) -> None:
    for codec in (Parcel.decoder, Parcel.encoder, Parcel.parts_encoder):
        with pytest.raises(ProtocolError, match="Parcel has no version"):
            codec(version)


def test_null_where_it_is_not_allowed() -> None:
    for data, version in [(b"\x00", 3), (b"\xff\xff", 1), (b"\x01\x01\x00\x00", 3)]:
        with pytest.raises(ProtocolError, match="is null"):
            Parcel.decoder(version)(data + bytes(20), 0, len(data) + 20)


def test_a_whole_buffer_has_nothing_after_the_message() -> None:
    data = Parcel().encode(3)
    with pytest.raises(ProtocolError, match="2 bytes before its buffer"):
        Parcel.decode(data + b"xx", 3)
    assert Parcel.decoder(3)(data + b"xx", 0, len(data) + 2)[1] == len(data)
    assert Parcel.decode(memoryview(data), 3) == Parcel()


def test_a_tag_of_another_version_is_refused() -> None:
    data = FetchRequest(topics=[]).encode(12)
    data = data[:-1] + b"\x01\x01\x00"
    with pytest.raises(ProtocolError, match="replica_state is not in version 12"):
        FetchRequest.decode(data, 12)


def test_a_tagged_field_must_be_as_long_as_it_says() -> None:
    data = Parcel(seal=b"s" * 16).encode(3).replace(b"\x10ssss", b"\x11ssss") + b"x"
    with pytest.raises(ProtocolError, match="not as long as it says"):
        Parcel.decode(data, 3)


def test_records_are_views_and_nothing_else_is() -> None:
    topic = ProduceRequest.TopicProduceData
    request = ProduceRequest(
        topic_data=[topic(name="t", partition_data=[topic.PartitionProduceData(records=b"batch")])]
    )
    buf = bytearray(request.encode(9))
    found = ProduceRequest.decoder(9)(buf, 0, len(buf))[0].topic_data[0].partition_data[0].records
    assert isinstance(found, memoryview)
    assert found.obj is buf
    found[0] = ord("B")
    assert b"Batch" in buf


def test_parts_carry_records_uncopied_unless_they_are_few() -> None:
    topic = FetchResponse.FetchableTopicResponse
    stored = [memoryview(bytes(5000)), None, b"", b"few", bytearray(b"second" * 1000)]
    response = FetchResponse(
        responses=[topic(topic="t", partitions=[topic.PartitionData(records=each) for each in stored])]
    )
    head = bytearray(b"head")
    parts: list[object] = [head]
    FetchResponse.parts_encoder(12)(response, parts)
    assert parts[0] is head
    assert parts[1] is stored[0]
    assert parts[3] is stored[4]
    assert len(parts) == 5
    assert b"".join(parts) == b"head" + response.encode(12)  # type: ignore[arg-type]


def test_a_maker_makes_what_the_constructor_makes() -> None:
    topic = ProduceResponse.TopicProduceResponse
    make, make_part = topic.maker(), topic.PartitionProduceResponse.maker()
    assert make() == topic()
    part = make_part(index=3, error_code=7)
    assert part == topic.PartitionProduceResponse(index=3, error_code=7)
    assert make().partition_responses is not make().partition_responses
    with pytest.raises(TypeError, match="nonsense"):
        make(nonsense=1)


def test_error_codes_go_in_as_they_are() -> None:
    topic = ProduceResponse.TopicProduceResponse
    partition = topic.PartitionProduceResponse(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    data = ProduceResponse(responses=[topic(name="t", partition_responses=[partition])]).encode(9)
    assert ProduceResponse.decode(data, 9).responses[0].partition_responses[0].error_code == 6


def test_all_topics_are_asked_for_by_null_since_version_1() -> None:
    assert MetadataRequest(topics=None).encode(1) == b"\xff\xff\xff\xff"
    assert MetadataRequest.decode(b"\xff\xff\xff\xff", 1).topics is None
    with pytest.raises(ProtocolError, match="topics must not be null"):
        MetadataRequest(topics=None).encode(0)
    with pytest.raises(ProtocolError, match="topics is null"):
        MetadataRequest.decode(b"\xff\xff\xff\xff", 0)
    assert OffsetFetchRequest(group_id="g", topics=None).encode(2) == b"\x00\x01g\xff\xff\xff\xff"


def test_a_nullable_tagged_struct_can_be_absent_null_or_there() -> None:
    """Kafka's default here is an empty struct, since a JSON null in its schema means no default."""
    value = ConsumerGroupMemberMetadataValue
    absent, null = value(), value(classic_member_metadata=None)
    there = value(classic_member_metadata=value.ClassicMemberMetadata(session_timeout_ms=45000))
    assert absent.classic_member_metadata == value.ClassicMemberMetadata()
    assert absent.encode(0)[-1:] == b"\x00"
    assert null.encode(0)[-4:] == b"\x01\x00\x01\x00"
    for each in (absent, null, there):
        assert value.decode(each.encode(0), 0) == each


def test_long_arrays_and_strings_take_the_longer_lengths() -> None:
    topic = MetadataResponse.MetadataResponseTopic
    partition = topic.MetadataResponsePartition(replica_nodes=list(range(1000)), isr_nodes=list(range(127)))
    response = MetadataResponse(
        cluster_id="c" * 32767, topics=[topic(name="n" * 127, partitions=[partition] * 200)] * 2
    )
    for version in (8, 12):
        assert MetadataResponse.decode(response.encode(version), version) == response


def test_the_source_of_a_codec_can_be_read() -> None:
    text = source_of(ProduceRequest, "decoder", 9)
    assert text.startswith("def decode(buf, pos, end):")
    assert "unpack_from_hiB" in text
