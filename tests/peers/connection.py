"""One client connection, spoken by hand: what is sent is what the test says, and nothing else.

Requests may be pipelined: `send` several, then `receive` their answers in order.
"""

import itertools
import socket
import struct
from types import TracebackType
from typing import Self, TypeVar

from ottla.wire.apis import BY_KEY, Api
from ottla.wire.header import RequestHeader, ResponseHeader
from ottla.wire.message import Message

M = TypeVar("M", bound=Message)
SECONDS_MAX = 20.0


class Disconnected(Exception):
    """The server closed the connection instead of answering."""


def api_of(message: type[Message]) -> Api:
    """The row of the table that a request or response belongs to."""
    assert message.api_key is not None
    return BY_KEY[message.api_key]


def request_frame(
    request: Message, version: int, correlation_id: int, client_id: str | None = "by-hand"
) -> bytes:
    """A whole request as it goes over the wire, its size first."""
    api = api_of(type(request))
    header = RequestHeader(
        request_api_key=api.key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    body = header.encode(api.request_header_version(version)) + request.encode(version)
    return struct.pack(">i", len(body)) + body


class Connection:
    """A socket to a broker that sends and receives whole messages."""

    def __init__(self, port: int, host: str = "127.0.0.1", *, seconds_max: float = SECONDS_MAX) -> None:
        self.socket = socket.create_connection((host, port), timeout=seconds_max)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._numbers = itertools.count(1)

    def send(self, request: Message, version: int) -> int:
        """Send a request, and return its correlation id."""
        number = next(self._numbers)
        self.send_bytes(request_frame(request, version, number))
        return number

    def send_bytes(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive_frame(self) -> bytes:
        """The next frame without its size."""
        [size] = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def receive(self, response: type[M], version: int, correlation_id: int | None = None) -> M:
        """The next answer, which must be to the request of that number, if one is named."""
        frame = self.receive_frame()
        header_version = api_of(response).response_header_version(version)
        header, start = ResponseHeader.decoder(header_version)(frame, 0, len(frame))
        if correlation_id is not None:
            assert header.correlation_id == correlation_id, (
                f"answer {header.correlation_id} to {correlation_id}"
            )
        return response.decode(frame[start:], version)

    def ask(self, request: Message, response: type[M], version: int) -> M:
        """Send one request and return its answer."""
        return self.receive(response, version, self.send(request, version))

    def closed_by_server(self) -> bool:
        """Whether the server has nothing more to say on this connection, and has closed it."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            try:
                part = self.socket.recv(min(size - len(parts), 1 << 20))
            except ConnectionResetError:
                part = b""
            if not part:
                raise Disconnected(f"after {len(parts)} of {size} bytes")
            parts += part
        return bytes(parts)

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
