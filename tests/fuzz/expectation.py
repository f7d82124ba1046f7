"""What may become of a frame: answered, closed, silence, or a wait that the request itself asked for.

Any frame may have its connection closed. What may not be is neither: no answer, and the connection open.
"""

import enum
from collections.abc import Mapping
from typing import Any

from ottla.broker.api import Api
from ottla.wire.errors import ProtocolError
from ottla.wire.header import read_request_header

WAIT_MS_MAX = 1000
_PRODUCE, _FETCH, _SHARE_FETCH = 0, 1, 78
_CREATE_TOPICS, _CREATE_PARTITIONS = 19, 37
# A rebalance waits for the other members, and a voter for its catching up.
_MAY_WAIT = frozenset({11, 14, 80})


class Expected(enum.Enum):
    """What the sender of a frame has to be prepared for."""

    ANSWER = "an answer, or the end of the connection"
    SILENCE = "nothing, as with acks=0"
    WAIT = "an answer, when the request says that it may take long"
    CLOSE = "the end of the connection"


def expectation(frame: bytes, apis: Mapping[int, Api], *, is_broken: bool = False) -> Expected:
    """Read a frame as a broker does; `is_broken` says that its bytes may be no request at all."""
    body = _readable(frame)
    try:
        key, version, _, _, position = read_request_header(body, 0, len(body))
    except ProtocolError:
        return Expected.CLOSE
    api = apis.get(key)
    if api is None or version not in api.versions:
        return Expected.ANSWER if key == 18 else Expected.CLOSE
    if not is_broken and key not in (_PRODUCE, _FETCH, _SHARE_FETCH) and key not in _MAY_WAIT:
        return Expected.ANSWER
    try:
        request: Any = api.request.decoder(version)(body, position, len(body))[0]
    except ProtocolError:
        return Expected.CLOSE
    if key == _PRODUCE:
        return Expected.ANSWER if request.acks else Expected.SILENCE
    if key in _MAY_WAIT or (key in (_FETCH, _SHARE_FETCH) and request.max_wait_ms > WAIT_MS_MAX):
        return Expected.WAIT
    return Expected.ANSWER


def partitions_wanted(frame: bytes, apis: Mapping[int, Api]) -> int:
    """The largest number of partitions that a frame asks for in one topic; 0 for any other request.

    A bit that is flipped makes 8,194 of two, and those are what an administrator who asks for them gets: 52 MB.
    """
    body = _readable(frame)
    try:
        key, version, _, _, position = read_request_header(body, 0, len(body))
        if key not in (_CREATE_TOPICS, _CREATE_PARTITIONS) or key not in apis or version not in apis[key].versions:
            return 0
        request: Any = apis[key].request.decoder(version)(body, position, len(body))[0]
    except ProtocolError:
        return 0
    counts = [each.num_partitions if key == _CREATE_TOPICS else each.count for each in request.topics or ()]
    return max(counts, default=0)


def _readable(frame: bytes) -> bytes:
    """What follows the size, with a client id that is text: it may be any bytes for a broker that never reads it."""
    body = frame[4:]
    if len(body) >= 10 and int.from_bytes(body[8:10], signed=True) > 0:
        end = 10 + int.from_bytes(body[8:10])
        body = body[:10] + b"x" * len(body[10:end]) + body[end:]
    return body
