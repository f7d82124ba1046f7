"""The answers of a connection: in order, as quickly as the peer takes them, and not more of them than may be held.

The laws C1, C5 and C8 of `connection.py` are kept here.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from ottla.channel.connections import Connections
from ottla.channel.ready import Ready, behind
from ottla.channel.send_queue import SendQueue
from ottla.world.network import Push, unsent_bytes

OPEN_REQUESTS_MAX = 256  # the compiled lane is told it (`broker/lane.py`)
_JOINED_BYTES_MAX = 64 << 10
_PIECE_BYTES = 256 << 10  # that the transport sends
_PIECE_BESIDE_BYTES = 4 << 10  # the same where the rest goes past it


class Reply(Protocol):
    """An answer that is owed: its parts once it is ready, None until then."""

    parts: list[Any] | None


class AnswerStream(asyncio.BufferedProtocol):
    """What a connection owes its peer, and what it has to wait for before it serves the next request."""

    __slots__ = (
        "_corked",
        "_kept",
        "_kept_bytes",
        "_push",
        "_queue",
        "_queued_bytes",
        "_stalled",
        "_waits",
        "_writable",
        "closed",
        "connections",
        "held",
        "muted",
        "owed",
        "transport",
    )

    def __init__(self, connections: Connections) -> None:
        self.connections = connections
        self.owed: deque[Reply] = deque()
        self.muted = False  # whether a request has to be done with before the next is served
        self.closed = False
        self.transport: Any = None
        self.held = 0  # bytes of answers
        self._corked: list[Any] | None = None
        self._kept: dict[Reply, int] | None = None  # answers that are ready and may not leave yet
        self._kept_bytes = 0
        self._queue: SendQueue | None = None
        self._queued_bytes = 0  # ever
        self._push: Push | None = None
        self._stalled = False
        self._waits = False  # for room in a budget
        self._writable = True

    @property
    def is_corked(self) -> bool:
        """Whether a read is under way, at whose end its answers leave."""
        return self._corked is not None

    def abort(self) -> None:
        """Close at once, whatever was not sent."""
        self.closed = True
        self._queue = None
        self.transport.abort()

    def resume(self) -> None:
        """Go on with the frames that were left, then with the socket."""
        raise NotImplementedError

    def received_bytes(self) -> int:
        """Return how much has come of the request that is not whole."""
        raise NotImplementedError

    # Answers

    def reply(self, parts: list[Any]) -> None:
        """Send an answer that is ready, behind those that are owed."""
        if self.closed:
            return
        if self.owed:
            ready, size = Ready(parts), sum(map(len, parts))
            self.owe(ready)
            self.keep(ready, size)
            self.connections.turn_cost += size
        elif self._corked is not None:
            self._cork(parts)
        else:
            self._send(parts)

    def _cork(self, parts: list[Any]) -> None:
        """Have an answer leave with the others of the read under way; large ones leave now, as C7 allows."""
        corked, connections = self._corked, self.connections
        assert corked is not None
        corked += parts
        size = sum(map(len, parts))
        cost = connections.turn_cost + size
        is_much = size > _JOINED_BYTES_MAX or (connections.answers.total and cost > connections.held_bytes_max)
        if not is_much or connections.due:
            connections.turn_cost = cost
        else:
            self._corked = []
            self._send(corked)

    def _uncork(self) -> None:
        corked, self._corked = self._corked, None
        if corked:
            self._send(corked)

    def _send(self, parts: list[Any]) -> None:
        """Hand buffers to the kernel at once where that can be, else have them wait until it takes them."""
        transport = self.transport
        if transport.is_closing():
            return
        if len(parts) == 1:
            size = len(parts[0])
        else:
            size = sum(map(len, parts))
            if len(parts) > 2 and size < _JOINED_BYTES_MAX:
                # One small buffer is cheaper to hand to the kernel than many.
                parts = [b"".join(parts)]
        self.connections.turn_cost += size
        queue, push = self._queue, self._push
        if queue is None:
            if push is not None and not transport.get_write_buffer_size():
                sent = push(parts)
                if sent == size:
                    return
                parts = behind(parts, sent)
            queue = self._queue = SendQueue()
        before = queue.size_bytes
        queue.put(parts)
        self._queued_bytes += queue.size_bytes - before
        self._pump()

    def _pump(self) -> None:
        """Have the transport send a piece of what waits, and the rest once it says that this has gone."""
        queue, transport, push = self._queue, self.transport, self._push
        if queue is not None:
            piece_bytes = _PIECE_BYTES if push is None else _PIECE_BESIDE_BYTES
            while queue.size_bytes and self._writable:
                transport.writelines(queue.piece(piece_bytes))
                if push is not None and not transport.get_write_buffer_size():
                    queue.push(push)
            if not queue.size_bytes:
                self._queue = None
        self._account()

    def _account(self) -> None:
        """Note how many bytes of answers this connection holds by now (C8)."""
        held = self._kept_bytes + (0 if self._queue is None else self._queue.size_bytes)
        if held != self.held:
            self.held = held
            self.connections.answers.hold(self, held)
        if held and held > self.connections.held_bytes_max:
            self.stall()

    def keep(self, reply: Reply, size_bytes: int) -> None:
        """Hold the bytes of an answer that may not leave yet."""
        kept = self._kept
        if kept is None:
            kept = self._kept = {}
        self._kept_bytes += size_bytes - kept.get(reply, 0)
        kept[reply] = size_bytes
        self._account()

    def owe(self, reply: Reply) -> None:
        """Keep a place in the order for an answer that is not ready."""
        self.owed.append(reply)
        if len(self.owed) >= OPEN_REQUESTS_MAX:
            self.stall()

    def settle(self, reply: Reply | None = None) -> None:
        """Send every ready answer at the head of the order; `reply` is the one that has become ready."""
        owed = self.owed
        if self.closed:
            owed.clear()
            return
        ready: list[Any] = []
        kept = self._kept
        while owed and (parts := owed[0].parts) is not None:
            first = owed.popleft()
            ready += parts
            if kept is not None and first in kept:
                self._kept_bytes -= kept.pop(first)
        if not ready:
            if reply is not None and reply.parts is not None and owed:
                size = sum(map(len, reply.parts))
                self.keep(reply, size)
                self.connections.turn_cost += size
        elif self._corked is not None:
            self._cork(ready)
        else:
            self._send(ready)
        if kept is not None:
            if not kept:
                self._kept = None
            self._account()
        if self._stalled:
            self.go_on()

    # Back-pressure

    def go_on(self) -> None:
        """Resume, unless the peer is still behind."""
        if (
            self._stalled
            and not self._waits
            and not self.muted
            and (not self.held or self.held <= self.connections.held_bytes_max // 2)
            and len(self.owed) < OPEN_REQUESTS_MAX // 2
        ):
            self.resume()

    def wait_for_room(self, callback: Callable[[], None]) -> None:
        """Serve no more requests until there is room for answers again, and call back then."""

        def go_on() -> None:
            self._waits = False
            if not self.closed:
                callback()
                self.go_on()

        self._waits = True
        self.stall()
        self.connections.answers.wait(self, go_on)

    def stall(self) -> None:
        """Read no more until the peer has caught up."""
        if not self._stalled and not self.closed:
            self._stalled = True
            self.transport.pause_reading()

    def mute(self) -> None:
        """Serve no further request until `unmute`, as Kafka does while one is under way."""
        self.muted = True
        self.stall()

    def unmute(self) -> None:
        """Go on, unless the peer is behind for another reason."""
        self.muted = False
        self.go_on()

    def pause_writing(self) -> None:
        """The transport holds a piece that the kernel does not take."""
        self._writable = False

    def resume_writing(self) -> None:
        """The peer has read; send more, and go on with its requests once little is left."""
        self._writable = True
        if self._queue is not None:
            if self._push is not None and not self.transport.get_write_buffer_size():
                self._queue.push(self._push)
            self._pump()
            if self._queue is None and self.closed:
                self.transport.close()
        self.go_on()

    def taken_bytes(self) -> int:
        """Return how much of what had to wait the peer has taken."""
        left = 0 if self._queue is None else self._queue.left_bytes
        return self._queued_bytes - left - int(self.transport.get_write_buffer_size()) - unsent_bytes(self._push)
