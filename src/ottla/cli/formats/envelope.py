"""Records as JSON objects, one on a line, the same for reading and writing.

    {"topic": "t", "partition": 0, "offset": 7, "timestamp": 1760000000000,
     "key": "k", "value": "v", "headers": [{"key": "h", "value": "x"}]}

J1  Bytes that are text stand as text; others under the name with `_base64` behind it. Null is null.
J2  What is written here is read back as the same record.

On the way in, `value` and `key` may be any JSON: what is not a text is written as JSON in its shortest form. Headers
may be an object. Topic, offset and the like are passed over: they say where the record was, not where it goes.

J3  A field of any other name is refused, since a misspelt one would be lost and its record be another.
"""

import base64
import difflib
import json
from collections.abc import Sequence
from typing import Any

from ottla.cli.formats.entry import Entry
from ottla.cli.formats.text import read_base64
from ottla.client.record import Record, TimestampType
from ottla.wire.record import Headers

_MEANT = ("key", "key_base64", "value", "value_base64")
_FIELDS = (*_MEANT, "headers", "timestamp", "partition", "topic", "offset", "timestamp_type")
_HEADER_FIELDS = ("key", "value", "value_base64")


def envelope(record: Record) -> dict[str, Any]:
    """Return a record as a JSON object."""
    found: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
    }
    if record.timestamp_type == TimestampType.LOG_APPEND_TIME:
        found["timestamp_type"] = "log-append"
    found |= _encoded("key", record.key) | _encoded("value", record.value)
    if record.headers:
        found["headers"] = [{"key": name} | _encoded("value", value) for name, value in record.headers]
    return found


def envelope_line(record: Record) -> bytes:
    """Return a record as one line of JSON."""
    text = json.dumps(envelope(record), ensure_ascii=False)
    # A name of a header that is no UTF-8 came as half a pair, which only an escape can express.
    return text.encode("utf-8", "backslashreplace") + b"\n"


def read_envelope(line: bytes, *, keep_partition: bool = False) -> Entry:
    """Return what a line of JSON says; ValueError says what is wrong with it."""
    try:
        found = json.loads(line)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    if isinstance(found, dict):
        _refuse_unknown(found, _FIELDS, "a record")
    if not isinstance(found, dict) or not any(name in found for name in _MEANT):
        raise ValueError('a record is a JSON object with a key or a value, as in {"key": "a", "value": 1}')
    partition = found.get("partition") if keep_partition else None
    return Entry(
        _decoded("value", found),
        _decoded("key", found),
        _read_headers(found.get("headers") or ()),
        _whole("partition", partition),
        _whole("timestamp", found.get("timestamp")),
    )


def _refuse_unknown(found: dict[str, Any], known: Sequence[str], what: str) -> None:
    unknown = next((name for name in found if name not in known), None)
    if unknown is None:
        return
    near = difflib.get_close_matches(unknown, known, n=1)
    would_be = f"did you mean {near[0]}?" if near else f"{what} has {', '.join(known)}"
    raise ValueError(f"unknown field {json.dumps(unknown)}: {would_be}")


def _encoded(name: str, data: bytes | None) -> dict[str, Any]:
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}


def _decoded(name: str, found: dict[str, Any]) -> bytes | None:
    encoded = found.get(f"{name}_base64")
    if encoded is not None:
        if not isinstance(encoded, str):
            raise ValueError(f"{name}_base64 is not a text")
        return read_base64(encoded.encode())
    value = found.get(name)
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _read_headers(given: Any) -> Headers:
    if isinstance(given, dict):
        return tuple((name, _decoded("value", {"value": value})) for name, value in given.items())
    if not isinstance(given, list | tuple):
        raise ValueError("headers are an object, or a list of objects with key and value")
    headers = []
    for each in given:
        if not isinstance(each, dict) or not isinstance(each.get("key"), str):
            raise ValueError("a header is an object with key and value")
        _refuse_unknown(each, _HEADER_FIELDS, "a header")
        headers.append((each["key"], _decoded("value", each)))
    return tuple(headers)


def _whole(name: str, value: Any) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise ValueError(f"{name} is {json.dumps(value)}, which is no number for it")
