"""A line to a broker that misbehaves on demand: slow, silent, cut, or eating answers.

L1  It is a proxy in a thread with a loop of its own; the broker advertises its port, so clients come back through it.
L2  What passes is not changed, and keeps its order. What is held back passes later, or never, when it was cut.
"""

import asyncio
import contextlib
import random
import threading
from collections.abc import Coroutine
from typing import Any, Self

from tests.peers.server import HOST

CHUNK_BYTES = 1 << 16


class BadLine:
    """Listens on one port and forwards to another."""

    def __init__(self, port: int, to_port: int) -> None:
        self.port, self._to_port = port, to_port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="line", daemon=True)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._flowing: asyncio.Event | None = None
        self._answering: asyncio.Event | None = None
        self._delay_s = 0.0
        self._cut_after: tuple[random.Random, int] | None = None
        self.cuts = 0

    # What a test may ask for

    def hold(self) -> None:
        """Let nothing pass, either way, until `heal`."""
        assert self._flowing is not None
        self._soon(self._flowing.clear)

    def eat_answers(self) -> None:
        """Let requests pass, and hold their answers until `heal`, or for ever when the line is cut first."""
        assert self._answering is not None
        self._soon(self._answering.clear)

    def delay(self, seconds: float) -> None:
        """Have every piece take that much longer."""
        self._delay_s = seconds

    def cut(self) -> None:
        """End every connection; what was held back is lost."""
        self._soon(self._cut)

    def cut_often(self, chance: random.Random, bytes_between: int) -> None:
        """End a connection after about so many bytes, either way, wherever that is."""
        self._cut_after = chance, bytes_between

    def heal(self) -> None:
        """Behave."""
        self._delay_s, self._cut_after = 0.0, None

        def flow() -> None:
            assert self._flowing is not None and self._answering is not None
            self._flowing.set()
            self._answering.set()

        self._soon(flow)

    # How it is done

    def __enter__(self) -> Self:
        self._thread.start()
        self._wait(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._wait(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _wait(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def _soon(self, call: Any) -> None:
        async def do() -> None:
            call()

        self._wait(do())

    async def _listen(self) -> None:
        self._flowing, self._answering = asyncio.Event(), asyncio.Event()
        self._flowing.set()
        self._answering.set()
        self._server = await asyncio.start_server(self._serve, HOST, self.port)

    async def _end(self) -> None:
        assert self._server is not None
        self._server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _cut(self) -> None:
        self.cuts += 1
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def _serve(self, client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter) -> None:
        try:
            broker_in, broker_out = await asyncio.open_connection(HOST, self._to_port)
        except OSError:
            client_out.close()
            return
        self._writers |= {client_out, broker_out}
        left = [1 << 62]
        if self._cut_after is not None:
            chance, between = self._cut_after
            left = [chance.randrange(1, 2 * between)]
        ways = [
            asyncio.create_task(self._pass(client_in, broker_out, left, answers=False)),
            asyncio.create_task(self._pass(broker_in, client_out, left, answers=True)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for writer in (client_out, broker_out):
                self._writers.discard(writer)
                writer.transport.abort()

    async def _pass(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, left: list[int], *, answers: bool
    ) -> None:
        assert self._flowing is not None and self._answering is not None
        with contextlib.suppress(OSError):
            while data := await source.read(CHUNK_BYTES):
                if self._delay_s:
                    await asyncio.sleep(self._delay_s)
                await self._flowing.wait()
                if answers:
                    await self._answering.wait()
                if self._cut_after is not None:
                    data = data[: left[0]]
                    left[0] -= len(data)
                target.write(data)
                await target.drain()
                if left[0] <= 0:
                    self.cuts += 1
                    # What was passed on has arrived, and then the line is gone.
                    await asyncio.sleep(0.002)
                    return
