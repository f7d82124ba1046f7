"""Texts in a template: bytes as they are, or as hexadecimal digits, base64, JSON, or numbers packed in them."""

import base64
import json
import re
import struct
from collections.abc import Callable

from ottla.cli.formats.template import TemplateError

KNOWN = "hex, base64, base64raw, json and unpack[...]"
_CODES = {"b": 1, "B": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "Q": 8}


def text_writer(modifier: str, argument: str = "") -> Callable[[bytes], bytes]:
    """Return what makes text of bytes."""
    if modifier == "":
        return bytes
    if modifier == "hex":
        return lambda data: data.hex().encode()
    if modifier == "base64":
        return base64.b64encode
    if modifier == "base64raw":
        return lambda data: base64.b64encode(data).rstrip(b"=")
    if modifier == "json":
        return lambda data: json.dumps(data.decode("utf-8", "backslashreplace"), ensure_ascii=False).encode()
    if modifier == "unpack":
        return _unpacker(argument)
    raise TemplateError(f"{{{modifier}}} is no way to write a text; there are {KNOWN}")


def text_reader(modifier: str) -> Callable[[bytes], bytes]:
    """Return what makes bytes of text; ValueError says that a text is not what it should be."""
    if modifier == "":
        return bytes
    if modifier == "hex":
        return read_hex
    if modifier in ("base64", "base64raw"):
        return read_base64
    if modifier == "json":
        return _read_json
    raise TemplateError(f"{{{modifier}}} is no way to read a text; there are hex, base64, base64raw and json")


def read_hex(text: bytes) -> bytes:
    """Return the bytes behind hexadecimal digits."""
    try:
        return bytes.fromhex(text.decode("ascii"))
    except ValueError:
        raise ValueError(f"{_shown(text)} is not a row of hexadecimal digits, two for a byte") from None


def read_base64(text: bytes) -> bytes:
    """Return the bytes behind base64, with padding or without."""
    stripped = text.strip().rstrip(b"=")
    try:
        return base64.b64decode(stripped + b"=" * (-len(stripped) % 4), validate=True)
    except ValueError:
        raise ValueError(f"{_shown(text)} is not base64") from None


def _read_json(text: bytes) -> bytes:
    """Return JSON in its shortest form."""
    try:
        return json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False).encode()
    except ValueError as error:
        raise ValueError(f"{_shown(text)} is not JSON: {error}") from None


def _shown(text: bytes) -> str:
    return repr(text.decode("utf-8", "backslashreplace"))[:60]


def _unpacker(pattern: str) -> Callable[[bytes], bytes]:
    """Return what reads numbers out of bytes: kcat's letters, < and > for the order, c . s $ and x for a space."""
    if not re.fullmatch(r"[<>bBhHiIqQc.sx$]+", pattern):
        raise TemplateError(f"unpack[{pattern}] has letters other than < > b B h H i I q Q c . s x $")

    def unpack(data: bytes) -> bytes:
        order, at = ">", 0
        out = bytearray()
        for code in pattern:
            if code in "<>":
                order = code
            elif code == "x":
                out += b" "
            elif code == "s":
                out += data[at:]
                at = len(data)
            elif code == "$":
                if at < len(data):
                    return bytes(out) + b" (%d bytes are left over)" % (len(data) - at)
            else:
                size = _CODES.get(code, 1)
                if at + size > len(data):
                    return bytes(out) + b" (%d bytes are missing)" % (at + size - len(data))
                part = data[at : at + size]
                out += part if code in "c." else b"%d" % struct.unpack(order + code, part)[0]
                at += size
        return bytes(out)

    return unpack
