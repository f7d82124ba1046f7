"""One end of a connection between simulated processes.

T1  The bytes of one direction arrive in order, each once, in pieces that need not be those that were written.
T3  When a process dies its machine says so: a reset goes to every peer. When a machine loses its power nobody says
    anything; whoever sends to it hears the reset once it is up again.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from ottla.sim.cluster.fabric import Fabric
from ottla.sim.loop import Process

_HIGH_BYTES = 64 << 10  # as asyncio has it


class SimTransport(asyncio.Transport):
    """One end of a connection. Bytes it was given are the machine's to deliver."""

    def __init__(self, fabric: Fabric, process: Process, host: str, address: tuple[str, int]) -> None:
        super().__init__({"peername": address})
        self.fabric = fabric
        self.process = process
        self.host = host
        self.protocol: asyncio.BaseProtocol | None = None
        self.peer: SimTransport | None = None
        self._closing = False  # no more is written
        self.is_over = False  # the protocol has been told, or nobody is left to tell
        self._eof_sent = False
        self._paused = False
        self._arrives_at = 0.0
        self._sent: list[bytes | Exception | None] = []  # on its way to the peer, in order
        self._inbox = bytearray()
        self._eof = False
        self._waiting = bytearray()  # what the window has no room for
        self._ends_later = False  # once nothing waits any more
        self._high_bytes = _HIGH_BYTES
        self._is_held = False  # whether the protocol was told to write no more
        self._reads_later = False
        fabric.transports[self] = None

    # Writing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send."""
        if not self._closing and not self._eof_sent:
            sent = 0 if self._waiting else self._send_some(bytes(data))
            self._waiting += bytes(data)[sent:]
            self._hold()

    def writelines(self, list_of_data: Any) -> None:
        """Send all of these."""
        self.write(b"".join(list_of_data))

    def push(self, parts: Sequence[bytes | bytearray | memoryview]) -> int:
        """Send as much of these as there is room for, past what waits; return how much that is."""
        if self._closing or self._eof_sent:
            return 0
        return self._send_some(b"".join(parts))

    def _send_some(self, data: bytes) -> int:
        window, peer = self.fabric.window_bytes, self.peer
        room = len(data)
        if window is not None and peer is not None and not peer.is_over:
            under_way = sum(len(each) for each in self._sent if isinstance(each, bytes)) + len(peer._inbox)
            room = max(0, min(room, window - under_way))
        self._send(data[:room])
        return room

    def fill_window(self) -> None:
        """Send what waited for room, and read what waited to be read."""
        if self._waiting and not self.is_over:
            sent = self._send_some(bytes(self._waiting))
            del self._waiting[:sent]
            if self._is_held and len(self._waiting) <= self._limit() // 4:
                self._is_held = False
                self.process.call_soon(self._tell, "resume_writing")
        if self._ends_later and not self._waiting and not self.is_over:
            self._ends_later = False
            self._send(None)
            if self._closing:
                self.process.call_soon(self._lose, None)

    def _limit(self) -> int:
        window = self.fabric.window_bytes
        return self._high_bytes if window is None else min(self._high_bytes, window)

    def _hold(self) -> None:
        if not self._is_held and len(self._waiting) > self._limit():
            self._is_held = True
            self._tell("pause_writing")

    def _tell(self, what: str) -> None:
        if self.protocol is not None and not self.is_over:
            getattr(self.protocol, what)()

    def _send(self, what: bytes | Exception | None) -> None:
        peer = self.peer
        if peer is None or what == b"":
            return
        fabric = self.fabric
        if isinstance(what, bytes) and len(what) > 1 and fabric.is_in_pieces():
            at = 1 + int(fabric.share() * (len(what) - 1))
            self._sent += [what[:at], what[at:]]
            self._carry()
        else:
            self._sent.append(what)
        self._carry()

    def _carry(self) -> None:
        """Have the next piece arrive after its delay, and after all before it."""
        fabric, peer = self.fabric, self.peer
        assert peer is not None
        timeline = fabric.timeline
        self._arrives_at = max(self._arrives_at, timeline.now + fabric.delay(self.host, peer.host))
        fabric.at(self._arrives_at, self._arrive)

    def _arrive(self) -> None:
        peer, fabric = self.peer, self.fabric
        if peer is None or not self._sent:
            return
        if fabric.is_cut(self.host, peer.host):

            def again() -> None:
                fabric.at(fabric.timeline.now + fabric.retransmission(), self._arrive)

            fabric.hold(self.host, peer.host, again)
            return
        what = self._sent.pop(0)
        fabric.carried += 1
        if fabric.watch is not None:
            fabric.watch(self.host, peer.host, what if isinstance(what, bytes) else b"")
        peer.receive(what)

    # Receiving; the machine's side

    def receive(self, what: bytes | Exception | None) -> None:
        """Something has come: bytes, the end, or a reset."""
        if self.process.is_dead:
            if isinstance(what, bytes) and self.peer is not None:
                self._send(ConnectionResetError("Connection reset by peer"))
            return
        if self.is_over:
            return
        if isinstance(what, bytes):
            if self._closing:
                return
            self._inbox += what
            self.process.call_soon(self._deliver)
        elif what is None:
            self._eof = True
            self.process.call_soon(self._deliver)
        else:
            self.process.call_soon(self._lose, what)

    def _deliver(self) -> None:
        """Hand the protocol what is there."""
        protocol = self.protocol
        while self._inbox and not self._paused and not self.is_over and protocol is not None:
            size = len(self._inbox)
            if self.host in self.fabric.slow_readers:
                if self._reads_later:
                    return
                self._reads_later = True
                self.process.call_later(self.fabric.read_again_s, self._read_again)
                size = min(size, self.fabric.read_bytes)
            if isinstance(protocol, asyncio.BufferedProtocol):
                buffer = memoryview(protocol.get_buffer(-1)).cast("B")
                count = min(len(buffer), size)
                buffer[:count] = self._inbox[:count]
                del self._inbox[:count]
                protocol.buffer_updated(count)
            else:
                assert isinstance(protocol, asyncio.Protocol)
                data = bytes(self._inbox[:size])
                del self._inbox[:size]
                protocol.data_received(data)
            self._make_room()
        if self._eof and not self._inbox and not self._paused and not self.is_over and protocol is not None:
            self._eof = False
            keep = protocol.eof_received() if hasattr(protocol, "eof_received") else False
            if not keep:
                self.close()

    def _read_again(self) -> None:
        self._reads_later = False
        self._deliver()

    def _make_room(self) -> None:
        """Tell the peer, if it waits for that, that its window has room again."""
        peer, fabric = self.peer, self.fabric
        if peer is not None and peer._waiting:
            fabric.at(fabric.timeline.now + fabric.delay(self.host, peer.host), peer.fill_window)

    def _lose(self, error: Exception | None) -> None:
        if self.is_over:
            return
        self.is_over = self._closing = True
        self._forget()
        self._inbox.clear()
        self._waiting.clear()
        self._make_room()
        if self.protocol is not None:
            self.protocol.connection_lost(error)

    # Its end

    def _forget(self) -> None:
        self.fabric.transports.pop(self, None)
        if self.peer is not None:
            self.fabric.ended.append((self.fabric.timeline.now, self.host, self.peer.host))

    def is_closing(self) -> bool:
        """Whether it is closed, or about to be."""
        return self._closing

    def close(self) -> None:
        """Send what was written, and end."""
        if not self._closing:
            self._closing = True
            if self._waiting:
                self._ends_later = True
                return
            if not self._eof_sent:
                self._send(None)
            self.process.call_soon(self._lose, None)

    def abort(self) -> None:
        """End at once; the peer sees a reset."""
        if not self.is_over:
            self._waiting.clear()
            if not self._closing or self._ends_later:
                self._send(ConnectionResetError("Connection reset by peer"))
            self._closing = True
            self.process.call_soon(self._lose, None)

    def break_off(self) -> None:
        """The connection is reset, at both ends."""
        error = ConnectionResetError("Connection reset by peer")
        for end in (self, self.peer):
            if end is not None:
                end._sent.clear()
                end._waiting.clear()
                end.receive(error)

    def vanish(self) -> None:
        """The process is dead: its machine resets the connection, if it still has power."""
        self.is_over = self._closing = True
        self._waiting.clear()
        self._forget()
        if self.host not in self.fabric.dark:
            self._send(ConnectionResetError("Connection reset by peer"))
        else:
            self._sent.clear()

    def write_eof(self) -> None:
        """Say that no more comes."""
        if not self._eof_sent and not self._closing:
            self._eof_sent = True
            if self._waiting:
                self._ends_later = True
            else:
                self._send(None)

    def can_write_eof(self) -> bool:
        """Of course."""
        return True

    # Flow

    def pause_reading(self) -> None:
        """Deliver nothing for now."""
        self._paused = True

    def resume_reading(self) -> None:
        """Deliver what has come meanwhile."""
        if self._paused:
            self._paused = False
            self.process.call_soon(self._deliver)

    def get_write_buffer_size(self) -> int:
        """How much waits for room."""
        return len(self._waiting)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Say how much may wait before the protocol is told."""
        self._high_bytes = _HIGH_BYTES if high is None else high
