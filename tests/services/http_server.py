"""A real server on this machine, with routes that tests need, and small clients for it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import h2.config
import h2.connection
import h2.events
import h2.exceptions
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from ottla.http.application import Application, ApplicationOptions
from ottla.http.limits import Limits
from ottla.http.route import Route
from ottla.http.server import HttpServer
from ottla.http.tls import Tls
from ottla.world.clock import RealClock
from ottla.world.entropy import RealEntropy

DEADLINE_S = 20.0


class Played:
    """What the routes of a test share with it."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.begun = 0
        self.sent = 0
        self.ended = 0


async def hello(request: Any, played: Played) -> Response:
    return PlainTextResponse(f"hello {request.query_params.get('name', '')}".strip())


async def name(request: Any, played: Played) -> Response:
    return PlainTextResponse(request.parameters["name"])


async def waits(request: Any, played: Played) -> Response:
    played.begun += 1
    await played.go_on.wait()
    return PlainTextResponse("waited")


async def count(request: Any, played: Played) -> Response:
    played.begun += 1
    return PlainTextResponse(str(len(await request.read())))


async def slow_reader(request: Any, played: Played) -> Response:
    played.begun += 1
    await played.go_on.wait()
    return PlainTextResponse(str(len(await request.read())))


async def flood(request: Any, played: Played) -> Response:
    async def pieces() -> AsyncIterator[bytes]:
        try:
            for _ in range(16_384):  # a gigabyte
                yield bytes(65_536)
                played.sent += 65_536
        finally:
            played.ended += 1

    return StreamingResponse(pieces())


async def drip(request: Any, played: Played) -> Response:
    """A stream that says something now and then, as a live query does."""

    async def pieces() -> AsyncIterator[bytes]:
        played.begun += 1
        try:
            yield b"first"
            await played.go_on.wait()
            yield b"last"
        finally:
            played.ended += 1

    return StreamingResponse(pieces())


async def breaks_off(request: Any, played: Played) -> Response:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"first"
        await asyncio.sleep(0.05)
        raise RuntimeError("broken")

    return StreamingResponse(pieces())


ROUTES = (
    Route("GET", "/breaks-off", breaks_off, is_stream=True),
    Route("GET", "/hello", hello),
    Route("GET", "/names/{name}", name),
    Route("GET", "/waits", waits),
    Route("POST", "/count", count),
    Route("POST", "/slow-reader", slow_reader),
    Route("GET", "/flood", flood, is_stream=True),
    Route("GET", "/drip", drip, is_stream=True),
)


@asynccontextmanager
async def serving(
    limits: Limits | None = None, *, tls: Tls | None = None, has_http2: bool = True
) -> AsyncIterator[tuple[HttpServer, Played]]:
    limits = limits or Limits()
    played = Played()
    application = Application(
        "test", ROUTES, played, ApplicationOptions(RealClock(), RealEntropy(), limits=limits)
    )
    server = HttpServer(application, "127.0.0.1", 0, limits=limits, tls=tls, has_http2=has_http2)
    server.start()
    try:
        yield server, played
    finally:
        played.go_on.set()
        await server.stop()


def run(scenario: Callable[[], Any]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(scenario(), DEADLINE_S)

    asyncio.run(bounded())


async def until(condition: Callable[[], object]) -> None:
    """Wait for a condition; `run` sets the deadline."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def is_ended(conversation: Awaitable[object]) -> bool:
    """Whether the server ends the connection in the course of a conversation that goes on for ever."""
    try:
        await conversation
    except (EOFError, OSError, h2.exceptions.ProtocolError):
        return True
    return False


async def is_stuck(conversation: Awaitable[object], seconds: float = 5.0) -> bool:
    """Whether a conversation that would go on for ever stands still, since the server reads no further."""
    try:
        await asyncio.wait_for(conversation, seconds)
    except TimeoutError:
        return True
    return False


class Peer:
    """A connection that says exactly what it is told to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, server: HttpServer, **options: Any) -> "Peer":
        return cls(*await asyncio.open_connection("127.0.0.1", server.port, **options))

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def ask(
        self, target: str, method: str = "GET", head: str = "", body: bytes = b""
    ) -> tuple[int, bytes]:
        await self.say(f"{method} {target} HTTP/1.1\r\nhost: x\r\n{head}\r\n".encode() + body)
        return await self.answer()

    async def answer(self) -> tuple[int, bytes]:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = next(line for line in head.split("\r\n") if line.startswith("content-length:"))
        return int(head.split(" ")[1]), await self.reader.readexactly(int(length.partition(":")[2]))

    async def rest(self) -> bytes:
        """Everything up to the end of the connection, however it ends."""
        received = b""
        with suppress(OSError):
            while piece := await self.reader.read(65_536):
                received += piece
        return received

    def close(self) -> None:
        self.writer.close()


class Http2Peer:
    """A client that speaks HTTP/2 from its first byte, as ksqlDB's does."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.http = h2.connection.H2Connection(h2.config.H2Configuration(validate_outbound_headers=False))

    @classmethod
    async def connect(cls, server: HttpServer) -> "Http2Peer":
        self = cls(await Peer.connect(server))
        self.http.initiate_connection()
        await self.flush()
        return self

    async def flush(self) -> None:
        await self.peer.say(self.http.data_to_send())

    async def send(
        self, stream: int, path: str, *more: tuple[str, str], method: str = "GET", ends: bool = True
    ) -> None:
        head = [(":method", method), (":path", path), (":scheme", "http"), (":authority", "x"), *more]
        self.http.send_headers(stream, head, end_stream=ends)
        await self.flush()

    async def events(self) -> list[Any]:
        data = await self.peer.reader.read(65_536)
        if not data:
            raise EOFError
        events = list(self.http.receive_data(data))
        await self.flush()
        return events

    async def answers(self, streams: int) -> dict[int, tuple[int, bytes]]:
        """The answers to so many streams."""
        statuses: dict[int, int] = {}
        bodies: dict[int, bytes] = {}
        ended: set[int] = set()
        while len(ended) < streams:
            for event in await self.events():
                if isinstance(event, h2.events.ResponseReceived):
                    statuses[event.stream_id] = int(dict(event.headers)[b":status"])
                elif isinstance(event, h2.events.DataReceived):
                    bodies[event.stream_id] = bodies.get(event.stream_id, b"") + event.data
                    self.http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, h2.events.StreamEnded):
                    ended.add(event.stream_id)
        return {stream: (statuses[stream], bodies.get(stream, b"")) for stream in ended}
