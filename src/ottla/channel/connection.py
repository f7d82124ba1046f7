"""The server's end of a connection: frames in, replies out, in order.

C1  Replies leave in the order of their requests, however long one of them takes.
C2  A frame is served from the buffer it was read into. Whoever serves it keeps no view of that buffer after returning.
C3  An idle connection owns no buffer: all connections of a loop read into one shared buffer, and only the tail of a
    frame that has not arrived wholly moves to a buffer of the connection's own.
C4  Memory follows bytes that have arrived, not lengths that were claimed.
C5  A peer that does not read its replies, or has too many requests open, is not read from, and none of its requests is
    served, until it catches up: a connection holds about a megabyte of answers, and one answer more.
C6  A peer that sends many requests at once is served some of them, or a megabyte of answers, then the others have their
    turn (law A3 of `connections.py`).
C7  Whoever waited for what a read brought is answered once all its frames are served, and before the sender: a record
    goes to its readers first, then the producer hears of it. Only where more than DUE_A_TURN wait, or they are given
    more than eight megabytes, do the others follow (law A3).
C8  What all connections hold of answers that are ready, and of requests that are not whole, stays within two budgets
    (`budget.py`).
C10 No frame is served within the serving of another, or while those who waited for it are answered: what is left of
    a read goes on in a later turn. So what a peer sends decides neither how deep calls go nor how long a turn is.
C11 A connection that is closed is gone a tick later, though its peer does not read what is left.

    READING --stall(), mute()--> STALLED --resume(), unmute()--> READING
       |                    |
       +------ close() -----+--> CLOSED        (replies still owed are dropped)
"""

import asyncio
import struct
from collections.abc import Callable
from typing import Any

from ottla.channel.answer_stream import AnswerStream
from ottla.channel.connections import TURN_COST_MAX, Connections
from ottla.channel.turns import LIGHT, NEW

_SIZE = struct.Struct(">i")
_unpack_size = _SIZE.unpack_from
FRAMES_A_TURN = 64  # the compiled part is told it (`swift.py`)
_REQUEST_BYTES_FREE = 64 << 10  # of a request that has arrived in part, whatever others hold

Buffer = bytearray | bytes | memoryview
Serve = Callable[["Connection", bytearray, int, int], None]


class Connection(AnswerStream):
    """One client. `serve(connection, buffer, start, end)` is called for each whole frame."""

    __slots__ = (
        "_frame",
        "_have",
        "_need",
        "_receive",
        "_room",
        "_serve",
        "backlog",
        "closed_tick",
        "is_put_off",
        "listener",
        "on_close",
        "pace",
        "peer",
        "rank",
        "session",
        "spent",
        "touched",
    )

    def __init__(self, connections: Connections, listener: str, serve: Serve) -> None:
        super().__init__(connections)
        self.listener = listener
        self.session: Any = None
        self.pace: Any = None  # at which this peer reads, if it reads much
        self.on_close: list[Callable[[], None]] = []
        self.peer = ""
        self.touched = connections.tick
        self.backlog: bytearray | None = None
        self.rank = NEW  # among those who are put off
        self.spent = 0  # on it, as far as it counts among those who are put off
        self.is_put_off = False
        self.closed_tick = 0  # at which it was closed
        self._receive = connections.receive
        self._serve = serve
        self._frame: bytearray | None = None
        self._have = 0
        self._need = 0
        self._room = 0

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
        self.transport.set_write_buffer_limits(high=0)  # so that it says when it has sent all (`send_queue.py`)

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop what is owed; nobody is there to read it."""
        self.closed = True
        self.connections.forget(self)
        self.owed.clear()
        self._frame = self.backlog = self._queue = self._kept = None
        waiting, self.on_close = self.on_close, []
        for callback in waiting:
            callback()

    def close(self) -> None:
        """Send what is written and hang up; at the second time send nothing any more."""
        if self.closed and (self._queue is not None or self.closed_tick != self.connections.tick):
            self.abort()
            return
        if not self.closed:
            self.closed = True
            self.closed_tick = self.connections.tick
            self._uncork()
        if self._queue is None:
            self.transport.close()
        else:
            self.transport.pause_reading()  # and `_pump` closes

    def hang_up(self) -> None:
        """Send what is written and say that no more comes; what the peer still sends is read and thrown away.

        To close with unread bytes in the socket would reset the connection, and a reset takes replies on their way
        to the peer along with it. The peer closes once it has read them; `close` ends a peer that does not.
        """
        if self.closed:
            return
        self.closed = True
        self.closed_tick = self.connections.tick
        self._uncork()
        self._frame = self.backlog = None
        if self._queue is not None:
            queue, self._queue = self._queue, None
            self.transport.writelines(queue.rest())
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.transport.resume_reading()

    def eof_received(self) -> bool:
        """Hang up when the peer does, and it has what was written."""
        if self._queue is None or self.closed:
            return self._queue is not None
        self.close()
        return True

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
            if self.connections.crowded:
                self.backlog = self._receive.data[:nbytes]
                self._put_off()
            else:
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
            self.connections.requests.hold(self, 0)
            self._take(frame, 0, self._need)  # it is all that this read has brought (C7)
            self._receive.give_back(frame)

    def _take(self, buffer: bytearray, position: int, end: int) -> None:
        """Serve the frames of a buffer; what they are answered at once leaves in one write."""
        connections = self.connections
        outer, connections.due = connections.due, []
        if outer is None:
            connections.turn_cost = 0
        outermost = self._corked is None
        if outermost:
            self._corked = []
        try:
            self._serve_frames(buffer, position, end)
            if connections.due:
                connections.settle_due()
        finally:  # whatever breaks, the others go on
            connections.due = outer
        if outer is None:
            if connections.turn_cost:
                connections.turn_over(self)
            else:
                self.rank = LIGHT
        if outermost:
            corked, self._corked = self._corked, None
            if corked:
                self._send(corked)

    def _serve_frames(self, buffer: bytearray, position: int, end: int) -> None:
        connections = self.connections
        limit = connections.frame_bytes_max
        turn = FRAMES_A_TURN
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
            if (not turn or connections.turn_cost > TURN_COST_MAX) and position < end:  # C6
                self.backlog = buffer[position:end]
                self._put_off()
                break

    def _put_off(self) -> None:
        """Go on with the backlog once the others have had their turn."""
        self.stall()
        self.connections.put_off(self)

    def _keep_tail(self, buffer: bytearray, position: int, end: int) -> None:
        have = end - position
        if have < 4:
            # Not even the size is here: ask for exactly those bytes next.
            self._need = -1
            self._room = 4
            frame = bytearray(4)
        else:
            self._need = _SIZE.unpack_from(buffer, position)[0] + 4
            frame = self._receive_frame(have)
            self._room = min(self._need, len(frame))
        frame[:have] = memoryview(buffer)[position:end]
        self._frame = frame
        self._have = have

    def _receive_frame(self, have: int) -> bytearray:
        """Return a buffer for a frame that has arrived in part: for more of it or, without room, for that part."""
        requests = self.connections.requests
        more = min(self._need, max(_REQUEST_BYTES_FREE, 2 * have)) - have
        if self._need > _REQUEST_BYTES_FREE and not requests.admits(self, more):
            requests.hold(self, have)
            self._waits = True
            self.stall()
            requests.wait(self, self._receive_more, more)
            return bytearray(have)
        frame = self._receive.frame(self._need, have)
        requests.hold(self, len(frame))
        return frame

    def _receive_more(self) -> None:
        """There is room for more of the frame that has arrived in part."""
        self._waits = False
        frame = self._frame
        if self.closed or frame is None:
            return
        self._keep_tail(frame, 0, self._have)
        self.go_on()

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

    def resume(self) -> None:
        """Go on with the frames that were left, then with the socket."""
        if self.closed or self.is_put_off:
            return
        if self.backlog and self.connections.due is not None:  # C10
            self.connections.put_off(self)
            return
        self._stalled = False
        backlog, self.backlog = self.backlog, None
        if backlog:
            self._take(backlog, 0, len(backlog))
        if not self._stalled and not self.closed:
            self.transport.resume_reading()

    def received_bytes(self) -> int:
        """Return how much has come of the request that is not whole."""
        return self._have
