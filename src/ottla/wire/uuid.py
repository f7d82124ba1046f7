"""Uuids are sixteen raw bytes; people see them as Kafka prints them.

The text form is URL-safe base64 without padding: 22 characters. Kafka reads texts of up to 24 characters, so
padding is tolerated on the way in.
"""

import binascii

from ottla.wire.errors import ProtocolError

ZERO_UUID = bytes(16)
METADATA_TOPIC_ID = bytes(15) + b"\x01"

_TO_URL = bytes.maketrans(b"+/", b"-_")
_FROM_URL = bytes.maketrans(b"-_", b"+/")


def uuid_text(raw: bytes) -> str:
    """The 22 characters Kafka prints for a uuid."""
    if len(raw) != 16:
        raise ProtocolError(f"a uuid has 16 bytes, not {len(raw)}")
    return binascii.b2a_base64(raw, newline=False).translate(_TO_URL)[:22].decode()


def uuid_bytes(text: str) -> bytes:
    """The sixteen bytes behind a printed uuid; ProtocolError when it is none."""
    try:
        encoded = text.rstrip("=").encode("ascii").translate(_FROM_URL)
        raw = binascii.a2b_base64(encoded + b"=" * (-len(encoded) % 4), strict_mode=True)
    except ValueError:
        raise ProtocolError(f"not a uuid: {text!r}") from None
    if len(raw) != 16:
        raise ProtocolError(f"not a uuid: {text!r} stands for {len(raw)} bytes, not 16")
    return raw
