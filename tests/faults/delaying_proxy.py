"""A proxy before a broker that delays EndTxn requests and sends them again, as a bad network does.

P1  Only EndTxn (key 26) is touched; every other byte passes as it came, both ways.
P2  A repetition goes over a connection of its own, and its answer is thrown away.
P3  From version 5 on the epoch rises with every transaction, so a repetition may come at any time, in the midst
    of a later transaction, too. Before that nothing tells it from the next transaction's own EndTxn, for Apache
    Kafka neither: it then comes before the client has the answer to the first.
"""

import asyncio
import contextlib
import random
import struct
import threading
from collections import Counter
from concurrent.futures import Future
from typing import Self

from tests.peers.server import HOST

END_TXN = 26
EPOCH_RISES_VERSION = 5
DELAY_SECONDS_MAX = 0.1
LATE_SECONDS_MAX = 0.5
CHUNK_BYTES = 1 << 16


class DelayingProxy:
    """Listens on one port and forwards to another, in a thread with a loop of its own."""

    def __init__(self, port: int, to_port: int, chance: random.Random) -> None:
        self.port, self._to_port, self._chance = port, to_port, chance
        self.delayed = 0
        self.repeated = 0
        self.versions: Counter[int] = Counter()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()
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

    def _in_loop(self, work: "asyncio.coroutines.Coroutine[None, None, None]") -> "Future[None]":
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
        """One client's connection, until either side ends it."""
        try:
            broker_in, broker_out = await asyncio.open_connection(HOST, self._to_port)
        except OSError:  # the broker is away, and so is this end of it
            client_out.close()
            return
        line = Line(client_out)
        ways = [
            asyncio.create_task(self._requests(client_in, broker_out, line)),
            asyncio.create_task(_answers(broker_in, line)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            client_out.close()
            broker_out.close()

    async def _requests(
        self, client_in: asyncio.StreamReader, broker_out: asyncio.StreamWriter, line: "Line"
    ) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                size = await client_in.readexactly(4)
                frame = size + await client_in.readexactly(struct.unpack(">i", size)[0])
                key, version = struct.unpack_from(">hh", frame, 4)
                if key == END_TXN:
                    await self._end_txn(frame, version, broker_out, line)
                else:
                    broker_out.write(frame)
                await broker_out.drain()

    async def _end_txn(
        self, frame: bytes, version: int, broker_out: asyncio.StreamWriter, line: "Line"
    ) -> None:
        self.versions[version] += 1
        if self._chance.random() < 0.3:
            self.delayed += 1
            await asyncio.sleep(self._chance.uniform(0, DELAY_SECONDS_MAX))
        if self._chance.random() >= 0.5:
            broker_out.write(frame)
            return
        self.repeated += 1
        if version >= EPOCH_RISES_VERSION:
            broker_out.write(frame)
            task = asyncio.create_task(self._again(frame, self._chance.uniform(0, LATE_SECONDS_MAX)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        line.flowing.clear()
        try:
            if self._chance.random() < 0.5:
                broker_out.write(frame)
                await self._again(frame, self._chance.uniform(0, 0.005))
            else:  # the repetition overtakes
                await self._again(frame, 0)
                broker_out.write(frame)
        finally:
            line.flowing.set()

    async def _again(self, frame: bytes, after_seconds: float) -> None:
        await asyncio.sleep(after_seconds)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection(HOST, self._to_port)
            try:
                writer.write(frame)
                await reader.readexactly(struct.unpack(">i", await reader.readexactly(4))[0])
            finally:
                writer.close()


class Line:
    """The way back to a client, which can be held up."""

    def __init__(self, client_out: asyncio.StreamWriter) -> None:
        self.client_out = client_out
        self.flowing = asyncio.Event()
        self.flowing.set()


async def _answers(broker_in: asyncio.StreamReader, line: Line) -> None:
    with contextlib.suppress(OSError):
        while data := await broker_in.read(CHUNK_BYTES):
            await line.flowing.wait()
            line.client_out.write(data)
            await line.client_out.drain()
