"""A proxy before a broker that loses or holds back the answers to chosen requests, and cuts connections.

P1  A request reaches the broker, unless its client is cut off; what is lost or held is the answer.
P2  An answer is lost by cutting its connection when it arrives, as when a broker dies after it has written.
P3  What is held leaves in its order, when it is released.
"""

import asyncio
import contextlib
import struct
import threading
from collections import Counter
from collections.abc import Coroutine
from typing import Any, Self

from tests.peers.server import HOST

PRODUCE, FETCH, LIST_OFFSETS, API_VERSIONS = 0, 1, 2, 18


class CuttingProxy:
    """Listens on one port and forwards to another, in a thread with a loop of its own."""

    def __init__(self, port: int, to_port: int) -> None:
        self.port, self._to_port = port, to_port
        self.requests: Counter[int] = Counter()
        self.lost = 0
        self._losing: int | None = None
        self._held: int | None = None
        self._flowing = asyncio.Event()
        self._cut: str | None = None
        self._connections: dict[asyncio.Task[Any], str] = {}  # and the ids of their clients
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._server: asyncio.Server | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def lose(self, api: int) -> None:
        """Lose the next answer to such a request."""
        self._losing = api

    def hold(self, api: int) -> None:
        """Hold all answers from the next one to such a request on."""
        self._held = api

    def release(self) -> None:
        """Let what was held go."""
        self._held = None
        self._loop.call_soon_threadsafe(self._flowing.set)

    def cut(self, client_id: str) -> None:
        """End all connections of a client, and every new one, until `mend`."""
        self._cut = client_id
        self._do(self._hang_up(client_id))

    def mend(self) -> None:
        """Let everybody through again."""
        self._cut = None

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, HOST, self.port)

    async def _end(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._hang_up(None)

    async def _hang_up(self, client_id: str | None) -> None:
        connections = [task for task, whose in self._connections.items() if client_id in (None, whose)]
        for each in connections:
            each.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _serve(self, client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = ""
        try:
            await self._pass(task, client_in, client_out)
        except asyncio.CancelledError:
            pass  # it was cut
        finally:
            del self._connections[task]
            client_out.close()

    async def _pass(
        self, task: asyncio.Task[Any], client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter
    ) -> None:
        broker_in, broker_out = await asyncio.open_connection(HOST, self._to_port)
        asked: dict[int, int] = {}  # number of a request -> its API
        ways = [
            asyncio.create_task(self._ask(task, client_in, broker_out, asked)),
            asyncio.create_task(self._answer(broker_in, client_out, asked)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            broker_out.close()

    async def _ask(
        self,
        task: asyncio.Task[Any],
        client_in: asyncio.StreamReader,
        broker_out: asyncio.StreamWriter,
        asked: dict[int, int],
    ) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                frame = await _frame(client_in)
                api, _, number, length = struct.unpack_from(">hhih", frame, 4)
                client_id = frame[14 : 14 + max(length, 0)].decode()
                if client_id == self._cut:
                    return
                self._connections[task] = client_id
                asked[number] = api
                self.requests[api] += 1
                broker_out.write(frame)

    async def _answer(
        self, broker_in: asyncio.StreamReader, client_out: asyncio.StreamWriter, asked: dict[int, int]
    ) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                frame = await _frame(broker_in)
                api = asked.pop(struct.unpack_from(">i", frame, 4)[0])
                if api == self._losing:
                    self._losing = None
                    self.lost += 1
                    return
                if api == self._held:
                    self._flowing.clear()
                    await self._flowing.wait()
                client_out.write(frame)


async def _frame(reader: asyncio.StreamReader) -> bytes:
    size = await reader.readexactly(4)
    return size + await reader.readexactly(struct.unpack(">i", size)[0])
