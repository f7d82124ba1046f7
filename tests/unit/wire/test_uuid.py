import pytest

from ottla.wire.errors import ProtocolError
from ottla.wire.uuid import METADATA_TOPIC_ID, ZERO_UUID, uuid_bytes, uuid_text


def test_uuids_are_printed_as_kafka_prints_them() -> None:
    assert uuid_text(ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuid_text(METADATA_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert uuid_text(bytes([0xFB, 0xFF] * 8)) == "-__7__v_-__7__v_-__7_w"


@pytest.mark.parametrize("raw", [bytes(range(16)), bytes(range(240, 256)), b"\xff" * 16])
def test_text_and_bytes_are_inverse(raw: bytes) -> None:
    assert uuid_bytes(uuid_text(raw)) == raw
    assert uuid_bytes(uuid_text(raw) + "==") == raw


@pytest.mark.parametrize(
    "text", ["", "AAAA", "A" * 23, "A" * 21, "!" * 22, "é" * 22, "AAAAAAAAAAA AAAAAAAAAA"]
)
def test_what_is_no_uuid_is_refused(text: str) -> None:
    with pytest.raises(ProtocolError):
        uuid_bytes(text)


def test_a_uuid_has_sixteen_bytes() -> None:
    with pytest.raises(ProtocolError):
        uuid_text(b"short")
