"""Formats of keys and values: the bytes that Kafka's own serializers write."""

import uuid
from typing import Any

import pytest

from ottla.client.serializer import (
    BYTES,
    SERDES,
    STRING,
    Deserializer,
    SerializationFormat,
    Serializer,
    SerializerCall,
    deserializer,
    serializer,
)
from ottla.metadata.settings.error import InvalidValue
from ottla.wire.record import Headers

ID = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
WRITTEN = [
    ("bytes", b"\x00a", b"\x00a"),
    ("string", "žába", "žába".encode()),
    ("short", -2, b"\xff\xfe"),
    ("integer", 258, b"\x00\x00\x01\x02"),
    ("long", -1, b"\xff" * 8),
    ("float", 1.5, b"\x3f\xc0\x00\x00"),
    ("double", -2.0, b"\xc0" + b"\x00" * 7),
    ("boolean", True, b"\x01"),
    ("json", {"č": [1, None]}, '{"č":[1,null]}'.encode()),
    ("uuid", ID, b"00112233-4455-6677-8899-aabbccddeeff"),
]


@pytest.mark.parametrize(("name", "value", "written"), WRITTEN)
def test_format(name: str, value: Any, written: bytes) -> None:
    out = serializer(name)
    assert out is not None
    assert out.call(value) == written
    back = deserializer(name)
    assert (written if back is None else back.call(written)) == value


def test_every_format_is_tried() -> None:
    assert {name for name, _, _ in WRITTEN} == SERDES.keys()


@pytest.mark.parametrize(
    ("name", "value", "written"),
    [
        ("org.apache.kafka.common.serialization.StringSerializer", "a", b"a"),
        ("IntegerSerializer", 1, b"\x00\x00\x00\x01"),
        ("str", "a", b"a"),
        ("ByteArray", bytearray(b"x"), b"x"),
    ],
)
def test_other_names_of_formats(name: str, value: object, written: bytes) -> None:
    found = serializer(name)
    assert found is not None
    assert found.call(value) == written


@pytest.mark.parametrize("kind", ["bytes", "string", "short", "integer", "uuid", "boolean"])
def test_what_does_not_fit_is_an_error(kind: str) -> None:
    with pytest.raises(Exception):  # noqa: B017 which one is Python's affair
        SERDES[kind].encode(1 << 40 if kind != "uuid" else object)
    if kind != "bytes":
        with pytest.raises(Exception):  # noqa: B017
            SERDES[kind].decode(b"\xff\xff\xff")


def test_nothing_given_leaves_bytes_alone() -> None:
    assert serializer(None) is None
    assert deserializer(None) is None
    assert deserializer(BYTES) is None, "they are bytes already"


def test_functions_are_called_as_they_are() -> None:
    assert serializer(str.encode) == SerializerCall(str.encode)
    assert deserializer(len) == SerializerCall(len)


def test_one_format_serves_both_ways() -> None:
    reverse = SerializationFormat(
        "reverse", lambda text: str(text)[::-1].encode(), lambda data: data.decode()[::-1]
    )
    out, back = serializer(reverse), deserializer(reverse)
    assert out is not None and back is not None
    assert back.call(out.call("abc")) == "abc"
    assert serializer(STRING) == SerializerCall(str.encode)


class Tagged:
    """Knows the topic and the headers."""

    def serialize(self, topic: str, headers: Headers, data: Any) -> bytes:
        return f"{topic}:{len(headers)}:{data}".encode()

    def deserialize(self, topic: str, headers: Headers, data: bytes) -> Any:
        return (topic, headers, data)


def test_objects_and_classes_are_told_topic_and_headers() -> None:
    assert isinstance(Tagged(), Serializer) and isinstance(Tagged(), Deserializer)
    for out, back in [
        (serializer(Tagged()), deserializer(Tagged())),
        (serializer(Tagged), deserializer(Tagged)),
    ]:
        assert out is not None and back is not None
        assert out.contextual and back.contextual
        assert out.call("t", (("a", b""),), 5) == b"t:1:5"
        assert back.call("t", (), b"x") == ("t", (), b"x")


def test_anything_else_is_refused() -> None:
    with pytest.raises(InvalidValue, match="formats are bytes, string"):
        serializer("avro", "key.serializer")
    with pytest.raises(InvalidValue, match="neither a function"):
        deserializer(5)
