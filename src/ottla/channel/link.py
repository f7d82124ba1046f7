"""The asking end of a connection: requests go out in a row, and answers come back in the same order.

K1  Every question ends: with its answer, or with LinkLost when the connection does.
K2  A frame is received into a buffer of its own, made when its size is known and its bytes have begun to come, so a
    fetch answer is not copied and its records are views of that buffer. It is used again once nobody has a view of
    it any more: fresh memory costs a page fault for every 4 KB, a fifth of the time that reading takes.
K3  An answer that is not to the oldest open question, or that cannot be read, ends the connection: nothing that
    follows could be trusted. Its number is looked at before there is a buffer for the rest: whoever answers may be no
    broker at all.
K4  A buffer grows with what has come, but for answers that are large by nature; of others no more is received than
    `_PLAIN_BYTES_MAX`.
"""

import asyncio
import struct
from collections import deque
from collections.abc import Callable
from functools import partial
from sys import getrefcount
from typing import Any, NamedTuple, TypeVar, cast

from ottla.wire.apis import BY_KEY
from ottla.wire.errors import ErrorCode, ProtocolError
from ottla.wire.message import Message
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

M = TypeVar("M", bound=Message)

_SIZE = struct.Struct(">i")
_HEAD = struct.Struct(">ihhih")
_SMALL_BYTES = 1 << 16
_API_VERSIONS = ApiVersionsRequest.api_key
_LARGE = frozenset({1, 59, 78})  # Fetch, FetchSnapshot, ShareFetch
_LARGE_BYTES_AT_ONCE = 64 << 20
_PLAIN_BYTES_AT_ONCE = 1 << 20
_PLAIN_BYTES_MAX = 256 << 20
_UNSUPPORTED = struct.pack(">h", ErrorCode.UNSUPPORTED_VERSION)
_FRAME_BYTES_MAX = (1 << 31) - 1
_SPARES_MAX = 3
_SPARE_BYTES_MAX = 8 << 20
_OURS_ALONE = 2  # the list, and the call that asks


class LinkLost(Exception):
    """The connection ended before the answer came."""


class Question(NamedTuple):
    """A request that awaits its answer."""

    number: int
    decoder: Callable[[Any, int, int], tuple[Any, int]]
    tagged: bool
    answered: Callable[[Any], object]
    is_large: bool  # or may be


class Link(asyncio.BufferedProtocol):
    """One connection to a broker. `lost` is called once, with the reason, after the last question has ended."""

    def __init__(self, client_id: str, lost: Callable[["Link", Exception], object]) -> None:
        encoded = client_id.encode()
        self._client = _SIZE.pack(len(encoded))[2:] + encoded
        self._lost = lost
        self._transport: asyncio.Transport | None = None
        self._questions: deque[Question] = deque()
        self._number = 0
        self._small = bytearray(_SMALL_BYTES)
        self._held = 0  # bytes of _small that wait for the rest of a frame
        self._frame: bytearray | None = None
        self._size = 0  # of the frame, which may be shorter than its buffer
        self._filled = 0
        self._spares: list[bytearray] = []
        self._writable: asyncio.Event | None = None
        self._reason: Exception | None = None
        self.bytes_in = 0
        self.bytes_out = 0
        self.requests = 0

    # Asking

    @property
    def is_open(self) -> bool:
        """Whether questions can be asked."""
        return self._transport is not None and self._reason is None

    @property
    def in_flight(self) -> int:
        """How many questions are open."""
        return len(self._questions)

    def ask(
        self, request: Message, response: type[M], version: int, answered: Callable[[M | Exception], object]
    ) -> None:
        """Send a request; `answered` is called with the response, or with a LinkLost or ProtocolError."""
        transport = self._transport
        if transport is None or self._reason is not None:
            answered(LinkLost(str(self._reason or "the connection is not open")))
            return
        parts = self._encode(request, version)
        key = request.api_key
        assert key is not None
        tagged = BY_KEY[key].response_header_version(version) > 0
        decoder = response.decoder(version) if key != _API_VERSIONS else partial(_read_versions, version)
        self._questions.append(
            Question(self._number, decoder, tagged, cast(Callable[[Any], object], answered), key in _LARGE)
        )
        transport.writelines(parts)

    def tell(self, request: Message, version: int) -> None:
        """Send a request that the broker will not answer: Produce with acks=0."""
        if self._transport is not None and self._reason is None:
            self._transport.writelines(self._encode(request, version))

    def _encode(self, request: Message, version: int) -> list[Any]:
        key = request.api_key
        assert key is not None
        head = bytearray(_HEAD.size - 2)
        head += self._client
        if BY_KEY[key].request_header_version(version) > 1:
            head.append(0)
        parts: list[Any] = [head]
        request.parts_encoder(version)(request, parts)
        size = sum(map(len, parts)) - 4
        if size > _FRAME_BYTES_MAX:
            raise ProtocolError(f"a request of {size} bytes does not fit a frame")
        self._number = self._number + 1 & 0x7FFF_FFFF
        _HEAD.pack_into(head, 0, size, key, version, self._number, len(self._client) - 2)
        self.bytes_out += size + 4
        self.requests += 1
        return parts

    @property
    def is_congested(self) -> bool:
        """Whether more was written than the operating system takes for now."""
        return self._writable is not None

    async def drain(self) -> None:
        """Wait until the operating system has taken what was written."""
        if self._writable is not None:
            await self._writable.wait()

    def close(self, reason: Exception | None = None) -> None:
        """Hang up; open questions end with `reason`."""
        if self._reason is None:
            self._reason = reason or LinkLost("the connection was closed")
        if self._transport is not None:
            self._transport.abort()

    # The transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """End every open question."""
        self._transport = None
        reason = self._reason = self._reason or LinkLost(
            str(exc) if exc else "the broker closed the connection"
        )
        questions, self._questions = self._questions, deque()
        failure: Exception | None = None
        for question in questions:
            try:
                question.answered(reason)
            except Exception as error:  # noqa: BLE001  # it is raised when the others have heard of their end (K1)
                failure = failure or error
        if self._writable is not None:
            self._writable.set()
            self._writable = None
        self._frame = None
        self._lost(self, reason)
        if failure is not None:
            raise failure

    def pause_writing(self) -> None:
        """Have `drain` wait."""
        self._writable = asyncio.Event()

    def resume_writing(self) -> None:
        """Let `drain` go on."""
        if self._writable is not None:
            self._writable.set()
            self._writable = None

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes go: the rest of a large frame, or the small buffer."""
        if self._frame is not None:
            return memoryview(self._frame)[self._filled : min(self._size, len(self._frame))]
        return memoryview(self._small)[self._held :]

    def buffer_updated(self, nbytes: int) -> None:
        """Take the bytes that have come."""
        self.bytes_in += nbytes
        try:
            if self._frame is not None:
                self._filled += nbytes
                if self._filled == self._size:
                    frame, self._frame = self._frame, None
                    self._answer(frame, 0, self._size)
                elif self._filled == len(self._frame):
                    grown = bytearray(min(self._size, 2 * self._filled))
                    grown[: self._filled] = self._frame
                    self._frame = grown
                return
            self._take(self._held + nbytes)
        except ProtocolError as error:
            self.close(error)

    def _take(self, end: int) -> None:
        """Answer with the whole frames in the small buffer, and make room for the one that is not whole."""
        small, pos = self._small, 0
        while end - pos >= 4:
            [size] = _SIZE.unpack_from(small, pos)
            if size < 4:
                raise ProtocolError(f"a broker sent a frame of {size} bytes")
            start, stop = pos + 4, pos + 4 + size
            if stop > end:
                if stop - pos > len(small):
                    if end - start < 4:
                        break  # without its number it gets no buffer
                    frame = self._buffer(self._admit(size, start))
                    frame[: end - start] = memoryview(small)[start:end]
                    self._frame, self._size, self._filled = frame, size, end - start
                    self._held = 0
                    return
                break
            # A copy: what is decoded may keep views of it, and the buffer is about to be filled anew.
            self._answer(bytes(memoryview(small)[start:stop]), 0, size)
            pos = stop
        self._held = end - pos
        if pos and self._held:
            small[: self._held] = small[pos:end]

    def _admit(self, size: int, start: int) -> int:
        """Return how large a buffer a large answer gets at first, if it is one to what was asked (K3, K4)."""
        question = self._next(self._small, start)
        if question.is_large:
            return min(size, _LARGE_BYTES_AT_ONCE)
        if size > _PLAIN_BYTES_MAX:
            raise ProtocolError(f"a broker sent a frame of {size} bytes")
        return min(size, _PLAIN_BYTES_AT_ONCE)

    def _buffer(self, size: int) -> bytearray:
        """Return a buffer of at least this size that nobody has a view of."""
        spares = self._spares
        for number in range(len(spares)):
            if len(spares[number]) >= size and getrefcount(spares[number]) == _OURS_ALONE:
                return spares[number]
        made = bytearray(size)
        if size <= _SPARE_BYTES_MAX:
            if len(spares) == _SPARES_MAX:
                del spares[0]
            spares.append(made)
        return made

    def _next(self, frame: bytes | bytearray, pos: int) -> Question:
        """Return the question that an answer is to."""
        if not self._questions:
            raise ProtocolError("a broker answered what was not asked")
        question = self._questions[0]
        [number] = _SIZE.unpack_from(frame, pos)
        if number != question.number:
            raise ProtocolError(f"a broker answered request {number} when {question.number} was next")
        return question

    def _answer(self, frame: bytes | bytearray, pos: int, end: int) -> None:
        question = self._next(frame, pos)
        pos += 4
        try:
            if question.tagged:
                pos = _skip_tags(frame, pos, end)
            message, _ = question.decoder(frame, pos, end)
        except ProtocolError as error:
            self._questions.popleft()
            question.answered(error)
            raise
        self._questions.popleft()
        question.answered(message)


def _read_versions(version: int, frame: bytes | bytearray, pos: int, end: int) -> tuple[Message, int]:
    """Read ApiVersions, which a broker answers in version 0 when it does not know the one it was asked in."""
    if frame[pos : pos + 2] == _UNSUPPORTED:
        version = 0
    return ApiVersionsResponse.decoder(version)(frame, pos, end)


def _skip_tags(frame: bytes | bytearray, pos: int, end: int) -> int:
    if pos < end and not frame[pos]:
        return pos + 1
    from ottla.wire.header import ResponseHeader

    _, after = ResponseHeader.decoder(1)(bytes(4) + bytes(frame[pos:end]), 0, end - pos + 4)
    return pos + after - 4
