"""The lines between the nodes of a cluster, each of which can be cut: both ways, one way, or so that nobody notices.

Every node's listeners for other nodes are reached through a port of the switchboard, which asks each connection whose
it is: its first frame bears the client id `node-N`.

S1  A cut from one node to another keeps back what the one sends, on the connections of either; nothing is lost, and
    with the end of the cut it goes on, as TCP does it.
S2  A break ends the connections between two nodes, and every new one.
S3  The port of a node that is down refuses, as the node's own would.
"""

import asyncio
import contextlib
import struct
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, Self

from tests.peers.server import HOST, free_ports

CHUNK_BYTES = 1 << 16
Pair = tuple[int, int]  # from, to


class Switchboard:
    """All ports, on a loop of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="switchboard", daemon=True)
        self._targets: dict[int, tuple[int, int]] = {}  # our port -> node, its port
        self._servers: dict[int, asyncio.Server] = {}
        self._flowing: dict[Pair, asyncio.Event] = {}
        self._broken: set[Pair] = set()
        self._lines: dict[Pair, set[asyncio.StreamWriter]] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._in_loop(self._end()).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def reach(self, node: int, port: int) -> int:
        """A port by which others reach that of a node."""
        [ours] = free_ports(1)
        self._targets[ours] = (node, port)
        return ours

    def up(self, node: int) -> None:
        """Listen for a node, which is about to start."""
        self._in_loop(self._up(node)).result(10)

    def down(self, node: int) -> None:
        """Refuse connections to a node, which has ended."""
        self._in_loop(self._down(node)).result(10)

    def cut(self, *pairs: Pair) -> None:
        """Keep back what goes this way, until it is healed."""
        self._in_loop(self._cut(pairs)).result(10)

    def break_up(self, one: int, other: int) -> None:
        """End all connections between two, and every new one."""
        self._in_loop(self._break_up({(one, other), (other, one)})).result(10)

    def heal(self) -> None:
        """Let everything go on."""
        self._in_loop(self._heal()).result(10)

    def _in_loop(self, work: Coroutine[Any, Any, None]) -> "Future[None]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _up(self, node: int) -> None:
        for ours, (target, port) in self._targets.items():
            if target == node and ours not in self._servers:
                self._servers[ours] = await asyncio.start_server(
                    lambda reader, writer, port=port: self._serve(node, port, reader, writer), HOST, ours
                )

    async def _down(self, node: int) -> None:
        for ours, (target, _) in self._targets.items():
            if target == node and ours in self._servers:
                self._servers.pop(ours).close()

    async def _cut(self, pairs: tuple[Pair, ...]) -> None:
        for pair in pairs:
            self._flow(pair).clear()

    async def _break_up(self, pairs: set[Pair]) -> None:
        self._broken |= pairs
        for pair in pairs:
            for writer in self._lines.get(pair, set()):
                writer.transport.abort()

    async def _heal(self) -> None:
        self._broken.clear()
        for event in self._flowing.values():
            event.set()

    async def _end(self) -> None:
        await self._heal()
        for server in self._servers.values():
            server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _flow(self, pair: Pair) -> asyncio.Event:
        if pair not in self._flowing:
            self._flowing[pair] = asyncio.Event()
            self._flowing[pair].set()
        return self._flowing[pair]

    async def _serve(
        self, node: int, port: int, caller_in: asyncio.StreamReader, caller_out: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            size = await caller_in.readexactly(4)
            frame = await caller_in.readexactly(struct.unpack(">i", size)[0])
            [length] = struct.unpack_from(">h", frame, 8)
            caller = int(frame[10 : 10 + length].decode().rpartition("-")[2])
            pair = (caller, node)
            if pair in self._broken:
                caller_out.transport.abort()
                return
            await self._flow(pair).wait()
            node_in, node_out = await asyncio.open_connection(HOST, port)
            node_out.write(size + frame)
            lines = self._lines.setdefault(pair, set())
            lines |= {caller_out, node_out}
            ways = [
                asyncio.create_task(_carry(caller_in, node_out, self._flow(pair))),
                asyncio.create_task(_carry(node_in, caller_out, self._flow((node, caller)))),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                lines -= {caller_out, node_out}
                for way in ways:
                    way.cancel()
                node_out.close()
        caller_out.close()


async def _carry(source: asyncio.StreamReader, target: asyncio.StreamWriter, flow: asyncio.Event) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(CHUNK_BYTES):
            await flow.wait()
            target.write(data)
            await target.drain()
        await flow.wait()  # news of an end is kept back, too
