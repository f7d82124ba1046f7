"""W1 and W2 for every message at every version, with messages drawn from the declarations themselves."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla.wire.catalog import every_message
from ottla.wire.errors import ProtocolError
from ottla.wire.field import UNSET, Field
from ottla.wire.message import Message, Struct, fields_of
from ottla.wire.primitive import Primitive

EVERY = every_message()

modest = settings(
    max_examples=6,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)

# Lengths on both sides of what one byte of a varint holds.
TEXTS = st.one_of(st.text(max_size=6), st.sampled_from(["", "é", "x" * 126, "x" * 127, "x" * 128, "ß" * 400]))
BLOBS = st.one_of(st.binary(max_size=6), st.sampled_from([b"", b"\0" * 126, b"\0" * 127, bytes(20000)]))
PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    **{f"int{bits}": st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": st.integers(0, 2**bits - 1) for bits in (16, 32)},
    "float64": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "uuid": st.binary(min_size=16, max_size=16),
    "string": TEXTS,
    "bytes": BLOBS,
    "records": BLOBS,
}
TAGS = st.one_of(
    st.none(), st.dictionaries(st.integers(90, 2**31 - 1), st.binary(max_size=9), min_size=1, max_size=2)
)


def structs(cls: type[Struct], version: int, flexible: bool) -> st.SearchStrategy[Any]:
    values = {
        field.name: values_of(field, version, flexible)
        for field in fields_of(cls)
        if version in field.versions
    }
    if flexible:
        values["unknown_tags"] = TAGS
    return st.builds(cls, **values)


def values_of(field: Field, version: int, flexible: bool) -> st.SearchStrategy[Any]:
    if isinstance(field.kind, Primitive):
        one = PRIMITIVES[field.kind.name]
        many = st.one_of(
            st.lists(one, max_size=3),
            one.flatmap(lambda value: st.sampled_from([[value] * 126, [value] * 127])),
        )
    else:
        one = structs(field.kind, version, flexible)
        many = st.lists(one, max_size=2)
    values = many if field.array else one
    if version in field.nullable:
        values = st.one_of(st.none(), values)
    if field.tag is not None and field.default is not UNSET:
        values = st.one_of(st.just(field.default), values)
    return values


def is_flexible(cls: type[Message], version: int) -> bool:
    return cls.flexible is not None and version >= cls.flexible


@pytest.mark.parametrize("cls", EVERY, ids=lambda cls: cls.__name__)
def test_w1_what_is_encoded_is_decoded(cls: type[Message]) -> None:
    drawn = st.tuples(*(structs(cls, version, is_flexible(cls, version)) for version in cls.versions))

    @modest
    @given(drawn)
    def check(messages: tuple[Message, ...]) -> None:
        for version, message in zip(cls.versions, messages, strict=True):
            data = message.encode(version)
            assert cls.decode(data, version) == message
            # In a receive buffer, between other frames.
            buf = bytearray(b"\xff" * 3 + data + b"\xff" * 3)
            decoded, pos = cls.decoder(version)(buf, 3, 3 + len(data))
            assert (decoded, pos) == (message, 3 + len(data))
            parts: list[Any] = []
            cls.parts_encoder(version)(message, parts)
            assert b"".join(parts) == data

    check()


@pytest.mark.parametrize("cls", EVERY, ids=lambda cls: cls.__name__)
def test_w2_whatever_the_bytes_only_a_protocol_error_comes_out(cls: type[Message]) -> None:
    version = cls.versions[-1]
    changes = st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=3
    )

    @modest
    @given(structs(cls, version, is_flexible(cls, version)), changes, st.binary(max_size=40))
    def check(message: Message, changes: list[tuple[float, int]], noise: bytes) -> None:
        data = bytearray(message.encode(version))
        for place, byte in changes if data else ():
            data[int(place * len(data))] = byte
        for hostile in (data, noise):
            try:
                decoded = cls.decode(hostile, version)
            except ProtocolError:
                continue
            # What was understood can be said again.
            assert cls.decode(decoded.encode(version), version) == decoded or "nan" in repr(decoded)

    check()
