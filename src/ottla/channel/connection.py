"""The server's end of a connection: frames in, replies out, in order.

C1  Replies leave in the order of their requests, however long one of them takes.
C2  A frame is served from the buffer it was read into. Whoever serves it keeps no view of that buffer after returning.
C3  An idle connection owns no buffer: all connections of a loop read into one shared buffer, and only the tail of a
    frame that has not arrived wholly moves to a buffer of the connection's own.
C4  Memory follows bytes that have arrived, not lengths that were claimed.
C5  A peer that does not read its replies, or has too many requests open, is not read from until it catches up.
C6  A peer that sends many requests at once is served some of them, then the others have their turn.
C7  Whoever waited for what a read brought is answered once all its frames are served, and before the sender: a record
    goes to its readers first, then the producer hears of it.

    READING --stall()--> STALLED --resume()--> READING
       |                    |
       +------ close() -----+--> CLOSED        (replies still owed are dropped)
"""

import asyncio
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from ottla.channel.receive_buffer import ReceiveBuffer
from ottla.world.network import Push

_SIZE = struct.Struct(">i")
_unpack_size = _SIZE.unpack_from
_OPEN_REQUESTS_MAX = 256
_FRAMES_A_TURN = 64
_WRITE_BUFFER_HIGH_BYTES = 4 << 20
_JOINED_BYTES_MAX = 64 << 10

Buffer = bytearray | bytes | memoryview


class Reply(Protocol):
    """An answer that is owed: its parts once it is ready, None until then."""

    parts: list[Any] | None


Serve = Callable[["Connection", bytearray, int, int], None]


class Connections:
    """Every open connection of a broker, with the limits they share."""

    __slots__ = (
        "accepted",
        "at_end",
        "by_address",
        "call_soon",
        "due",
        "frame_bytes_max",
        "on_empty",
        "open",
        "per_address_max",
        "pusher",
        "receive",
        "refused",
        "tick",
        "total_max",
    )

    def __init__(
        self,
        *,
        frame_bytes_max: int,
        total_max: int,
        per_address_max: int,
        call_soon: Callable[[Callable[[], None]], object],
        pusher: Callable[[asyncio.BaseTransport], Push | None] = lambda _: None,
    ) -> None:
        self.call_soon = call_soon
        self.pusher = pusher
        # What runs after the frames of the read under way; None outside of one.
        self.due: list[Callable[[], None]] | None = None
        self.at_end = False  # whether the frame under way is the last of its read
        self.receive = ReceiveBuffer()
        self.open: dict[Connection, None] = {}
        self.by_address: dict[str, int] = {}
        self.frame_bytes_max = frame_bytes_max
        self.total_max = total_max
        self.per_address_max = per_address_max
        self.on_empty: Callable[[], object] | None = None
        self.accepted = 0
        self.refused = 0
        self.tick = 0

    def admit(self, connection: "Connection") -> bool:
        """Count a new connection in, or refuse it over a limit."""
        address = connection.peer
        if len(self.open) >= self.total_max or self.by_address.get(address, 0) >= self.per_address_max:
            self.refused += 1
            return False
        self.accepted += 1
        self.open[connection] = None
        self.by_address[address] = self.by_address.get(address, 0) + 1
        return True

    def soon(self, callback: Callable[[], None]) -> None:
        """Call back once the frames of the read under way are served (C7), or else at the end of the loop's turn."""
        if self.due is not None:
            self.due.append(callback)
        else:
            self.call_soon(callback)

    def settle_due(self) -> None:
        """Call back all who asked for it during the read under way."""
        due, self.due = self.due, []
        for callback in due or ():
            callback()

    def forget(self, connection: "Connection") -> None:
        """Count a connection out."""
        if connection in self.open:
            del self.open[connection]
            left = self.by_address[connection.peer] - 1
            if left:
                self.by_address[connection.peer] = left
            else:
                del self.by_address[connection.peer]
            if not self.open and self.on_empty is not None:
                self.on_empty()

    def close_idle(self, ticks_max: int) -> int:
        """Start a new tick and close whoever sent nothing for `ticks_max` of them and is owed nothing."""
        self.tick += 1
        idle = [c for c in self.open if self.tick - c.touched > ticks_max and not c.owed]
        for connection in idle:
            connection.close()
        return len(idle)


class Connection(asyncio.BufferedProtocol):
    """One client. `serve(connection, buffer, start, end)` is called for each whole frame."""

    __slots__ = (
        "_corked",
        "_frame",
        "_have",
        "_need",
        "_push",
        "_receive",
        "_room",
        "_serve",
        "_stalled",
        "_writable",
        "backlog",
        "closed",
        "connections",
        "listener",
        "on_close",
        "owed",
        "pace",
        "peer",
        "session",
        "touched",
        "transport",
    )

    def __init__(self, connections: Connections, listener: str, serve: Serve) -> None:
        self.connections = connections
        self.listener = listener
        self.owed: deque[Reply] = deque()
        self.closed = False
        self.session: Any = None
        self.pace: Any = None  # at which this peer reads, if it reads much
        self.on_close: list[Callable[[], None]] = []
        self.peer = ""
        self.touched = connections.tick
        self.backlog: bytearray | None = None
        self.transport: Any = None
        self._receive = connections.receive
        self._serve = serve
        self._corked: list[Any] | None = None
        self._frame: bytearray | None = None
        self._have = 0
        self._need = 0
        self._push: Push | None = None
        self._room = 0
        self._stalled = False
        self._writable = True

    # Life

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport, or close it over a limit."""
        self.transport = transport
        self.peer = (transport.get_extra_info("peername") or ("",))[0]
        if not self.connections.admit(self):
            self.closed = True
            self.transport.abort()
            return
        self._push = self.connections.pusher(transport)
        self.transport.set_write_buffer_limits(high=_WRITE_BUFFER_HIGH_BYTES)

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop what is owed; nobody is there to read it."""
        self.closed = True
        self.connections.forget(self)
        self.owed.clear()
        self._frame = self.backlog = None
        waiting, self.on_close = self.on_close, []
        for callback in waiting:
            callback()

    def close(self) -> None:
        """Send what is written and hang up."""
        if not self.closed:
            self.closed = True
            self._uncork()
        self.transport.close()

    def hang_up(self) -> None:
        """Send what is written and say that no more comes; what the peer still sends is read and thrown away.

        To close with unread bytes in the socket would reset the connection, and a reset takes replies on their way
        to the peer along with it. The peer closes once it has read them; `close` ends a peer that does not.
        """
        if self.closed:
            return
        self.closed = True
        self._uncork()
        self._frame = self.backlog = None
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.transport.resume_reading()

    def eof_received(self) -> bool:
        """Hang up when the peer does."""
        return False

    # Frames in

    def get_buffer(self, sizehint: int) -> memoryview:
        """Say where the next bytes go: the rest of a half-read frame, or the shared buffer."""
        frame = self._frame
        if frame is None:
            return self._receive.view
        return memoryview(frame)[self._have : self._room]

    def buffer_updated(self, nbytes: int) -> None:
        """Serve every whole frame that has arrived."""
        if self.closed:
            return
        self.touched = self.connections.tick
        if self._frame is None:
            self._take(self._receive.data, 0, nbytes)
            return
        self._have += nbytes
        frame = self._frame
        if self._have < self._room:
            return
        if self._need < 0:
            self._sized(frame)
        elif self._have < self._need:  # C4: the claim was long, and so far it has been kept
            self._keep_tail(frame, 0, self._have)
        else:
            self._frame = None
            self._serve(self, frame, 4, self._need)
            self._receive.give_back(frame)

    def _take(self, buffer: bytearray, position: int, end: int) -> None:
        """Serve the frames of a buffer; what they are answered at once leaves in one write."""
        connections = self.connections
        outer, connections.due = connections.due, []
        outermost = self._corked is None
        if outermost:
            self._corked = []
        limit = connections.frame_bytes_max
        turn = _FRAMES_A_TURN
        while position < end:
            if end - position < 4:
                self._keep_tail(buffer, position, end)
                break
            (size,) = _unpack_size(buffer, position)
            if not 0 <= size <= limit:
                self.close()
                break
            stop = position + 4 + size
            if stop > end:
                self._keep_tail(buffer, position, end)
                break
            connections.at_end = stop == end
            self._serve(self, buffer, position + 4, stop)
            position = stop
            if self._stalled:
                self.backlog = buffer[position:end]
                break
            if self.closed:
                break
            turn -= 1
            if not turn and position < end:  # C6
                self.backlog = buffer[position:end]
                self.stall()
                connections.call_soon(self._go_on)
                break
        if connections.due:
            connections.settle_due()
        connections.due = outer
        if outermost:
            corked, self._corked = self._corked, None
            if corked:
                self._send(corked)

    def _keep_tail(self, buffer: bytearray, position: int, end: int) -> None:
        have = end - position
        if have < 4:
            # Not even the size is here: ask for exactly those bytes next.
            self._need = -1
            self._room = 4
            frame = bytearray(4)
        else:
            self._need = _SIZE.unpack_from(buffer, position)[0] + 4
            frame = self._receive.frame(self._need, have)
            self._room = min(self._need, len(frame))
        frame[:have] = memoryview(buffer)[position:end]
        self._frame = frame
        self._have = have

    def _sized(self, frame: bytearray) -> None:
        """The four bytes of a size that came torn are complete now."""
        (size,) = _SIZE.unpack_from(frame)
        self._frame = None
        if not 0 <= size <= self.connections.frame_bytes_max:
            self.close()
        elif size == 0:
            self._serve(self, frame, 4, 4)
        else:
            self._keep_tail(frame, 0, 4)

    # Replies out

    def reply(self, parts: list[Any]) -> None:
        """Send an answer that is ready, behind those that are owed."""
        if self.closed:
            return
        if self.owed:
            self.owe(Ready(parts))
        elif self._corked is not None:
            self._corked += parts
        else:
            self._send(parts)

    def _uncork(self) -> None:
        corked, self._corked = self._corked, None
        if corked:
            self._send(corked)

    def _send(self, parts: list[Any]) -> None:
        """Hand buffers to the kernel at once where that can be, else to the transport."""
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
        if self._push is not None and not transport.get_write_buffer_size():
            sent = self._push(parts)
            if sent == size:
                return
            parts = _behind(parts, sent)
        transport.writelines(parts)

    def owe(self, reply: Reply) -> None:
        """Keep a place in the order for an answer that is not ready."""
        self.owed.append(reply)
        if len(self.owed) >= _OPEN_REQUESTS_MAX:
            self.stall()

    def settle(self) -> None:
        """Send every ready answer at the head of the order."""
        owed = self.owed
        if self.closed:
            owed.clear()
            return
        ready: list[Any] = []
        while owed and (parts := owed[0].parts) is not None:
            owed.popleft()
            ready += parts
        if ready and self._corked is not None:
            self._corked += ready
        elif ready:
            self._send(ready)
        if self._stalled:
            self._go_on()

    def _go_on(self) -> None:
        """Resume, unless the peer is still behind."""
        if self._stalled and self._writable and len(self.owed) < _OPEN_REQUESTS_MAX // 2:
            self.resume()

    # Back-pressure

    def stall(self) -> None:
        """Read no more until the peer has caught up."""
        if not self._stalled and not self.closed:
            self._stalled = True
            self.transport.pause_reading()

    def resume(self) -> None:
        """Go on with the frames that were left, then with the socket."""
        if self.closed:
            return
        self._stalled = False
        backlog, self.backlog = self.backlog, None
        if backlog:
            self._take(backlog, 0, len(backlog))
        if not self._stalled and not self.closed:
            self.transport.resume_reading()

    def pause_writing(self) -> None:
        """The peer does not read: neither do we."""
        self._writable = False
        self.stall()

    def resume_writing(self) -> None:
        """The peer reads again."""
        self._writable = True
        self._go_on()


def _behind(parts: list[Any], sent: int) -> list[Any]:
    """What is left of buffers whose first `sent` bytes have gone, without copying any of it."""
    for number, part in enumerate(parts):
        if sent < len(part):
            return [memoryview(part)[sent:], *parts[number + 1 :]]
        sent -= len(part)
    return []


class Ready:
    """An answer that is ready but stands behind one that is not."""

    __slots__ = ("parts",)

    def __init__(self, parts: list[Any]) -> None:
        self.parts: list[Any] | None = parts
