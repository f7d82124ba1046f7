"""A gate before a broker, where a chosen request springs a trap: somebody dies at exactly that moment.

G1  Every frame passes whole and in order, both ways; only what a trap names is held, and only until it was sprung.
G2  A trap is sprung once. What it does runs in a thread, while other connections go on.
G3  Afterwards the connection is cut, unless the trap says otherwise: a request that was held before it was sent has
    never been, and an answer that was held never comes.
G4  A held frame may be sent later, over a connection of its own, as from the buffers of a network.
"""

import asyncio
import contextlib
import enum
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Self

from ottla.wire.header import read_request_header
from ottla.wire.message import Message
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.produce import ProduceRequest
from tests.peers.server import HOST

REQUESTS: dict[int, type[Message]] = {
    0: ProduceRequest,
    1: FetchRequest,
    22: InitProducerIdRequest,
    26: EndTxnRequest,
}


class Moment(enum.Enum):
    """When, in the life of a request, the trap is sprung."""

    BEFORE = "before it reaches the broker"
    SENT = "once it is on its way to the broker"
    ANSWERED = "once the broker has answered, before the client knows"


@dataclass(frozen=True)
class Caught:
    """The request that sprang a trap, and the port that its client sent it from."""

    frame: bytes
    transactional_id: str
    client_port: int


@dataclass
class Trap:
    """The `nth` such request, by a client that is wanted.

    A fetch may be anybody's; others must have a transactional id, which begins so, and of EndTxn only commits count.
    """

    request: type[Message]
    moment: Moment
    strike: Callable[[Caught], None]
    transactional_id: str = ""
    nth: int = 1
    cut: bool = True
    wanted: Callable[[int], bool] = lambda client_port: True
    sprung: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)
    failure: Exception | None = None

    def fits(self, message: Message, client_port: int) -> bool:
        if not isinstance(message, self.request):
            return False
        if not isinstance(message, FetchRequest):
            identity = identity_of(message)
            if identity is None or not identity.startswith(self.transactional_id):
                return False
        if isinstance(message, EndTxnRequest) and not message.committed:
            return False
        if not self.wanted(client_port):
            return False
        self.nth -= 1
        return self.nth == 0


def identity_of(message: Message) -> str | None:
    """The transactional id in a request, if it has one."""
    found: str | None = getattr(message, "transactional_id", None)
    return found


class Gate:
    """Listens on one port and forwards to another, in a thread with a loop of its own."""

    def __init__(self, port: int, to_port: int) -> None:
        self.port, self._to_port = port, to_port
        self._traps: list[Trap] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gate", daemon=True)
        self._server: asyncio.Server | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._in_loop(self._listen()).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._in_loop(self._end()).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def set(self, trap: Trap) -> Trap:
        self._traps.append(trap)
        return trap

    def send_late(self, frame: bytes) -> bytes:
        """Send a request that was held, and return its answer without its size; nothing if there was none."""
        with contextlib.suppress(OSError), socket.create_connection((HOST, self._to_port), 10) as line:
            line.sendall(frame)
            with line.makefile("rb") as answers:
                size = answers.read(4)
                return answers.read(struct.unpack(">i", size)[0]) if len(size) == 4 else b""
        return b""

    def _in_loop(self, work: Coroutine[Any, Any, None]) -> "Future[None]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, HOST, self.port)

    async def _end(self) -> None:
        assert self._server is not None
        self._server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter) -> None:
        """One client's connection, until either side or a trap ends it."""
        try:
            broker_in, broker_out = await asyncio.open_connection(HOST, self._to_port)
        except OSError:  # the broker is away, and so is this end of it
            client_out.close()
            return
        client_port = client_out.get_extra_info("peername")[1]
        awaited: dict[int, tuple[Trap, Caught]] = {}  # by correlation id
        ways = [
            asyncio.create_task(self._requests(client_in, broker_out, client_port, awaited)),
            asyncio.create_task(self._answers(broker_in, client_out, awaited)),
        ]
        try:
            # To be ended is no error, and nobody is there to hear of it.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            client_out.close()
            broker_out.close()

    async def _requests(
        self,
        client_in: asyncio.StreamReader,
        broker_out: asyncio.StreamWriter,
        client_port: int,
        awaited: dict[int, tuple[Trap, Caught]],
    ) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                frame = await _frame(client_in)
                found = self._find(frame, client_port)
                if found is not None:
                    trap, transactional_id = found
                    caught = Caught(frame, transactional_id, client_port)
                    if trap.moment is Moment.ANSWERED:
                        awaited[struct.unpack_from(">i", frame, 8)[0]] = trap, caught
                    else:
                        if trap.moment is Moment.SENT:
                            broker_out.write(frame)
                            await broker_out.drain()
                        await self._spring(trap, caught)
                        if trap.cut:
                            return
                        if trap.moment is Moment.SENT:
                            continue
                broker_out.write(frame)
                await broker_out.drain()

    async def _answers(
        self,
        broker_in: asyncio.StreamReader,
        client_out: asyncio.StreamWriter,
        awaited: dict[int, tuple[Trap, Caught]],
    ) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                frame = await _frame(broker_in)
                found = awaited.pop(struct.unpack_from(">i", frame, 4)[0], None)
                if found is not None:
                    await self._spring(*found)
                    if found[0].cut:
                        return
                client_out.write(frame)
                await client_out.drain()

    def _find(self, frame: bytes, client_port: int) -> tuple[Trap, str] | None:
        if not self._traps:
            return None
        api_key, version = struct.unpack_from(">hh", frame, 4)
        kind = REQUESTS.get(api_key)
        if kind is None:
            return None
        *_, start = read_request_header(frame, 4, len(frame))
        if not any(trap.request is kind for trap in self._traps):
            return None
        message = kind.decode(frame[start:], version)
        for trap in self._traps:
            if trap.fits(message, client_port):
                self._traps.remove(trap)
                trap.sprung.set()
                return trap, identity_of(message) or ""
        return None

    async def _spring(self, trap: Trap, caught: Caught) -> None:
        try:
            await self._loop.run_in_executor(None, trap.strike, caught)
        except Exception as failure:  # noqa: BLE001 - whoever set the trap is to know
            trap.failure = failure
        finally:
            trap.done.set()


async def _frame(reader: asyncio.StreamReader) -> bytes:
    size = await reader.readexactly(4)
    return size + await reader.readexactly(struct.unpack(">i", size)[0])
