"""One end of a connection between simulated processes.

T1  The bytes of one direction arrive in order, each once, in pieces that need not be those that were written.
T3  When a process dies its machine says so: a reset goes to every peer. When a machine loses its power nobody says
    anything; whoever sends to it hears the reset once it is up again.
"""

import asyncio
from typing import Any

from ottla.sim.cluster.fabric import Fabric
from ottla.sim.loop import Process


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
        fabric.transports[self] = None

    # Writing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send."""
        if not self._closing and not self._eof_sent:
            self._send(bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        """Send all of these."""
        if not self._closing and not self._eof_sent:
            self._send(b"".join(list_of_data))

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
            if isinstance(protocol, asyncio.BufferedProtocol):
                buffer = memoryview(protocol.get_buffer(-1)).cast("B")
                count = min(len(buffer), len(self._inbox))
                buffer[:count] = self._inbox[:count]
                del self._inbox[:count]
                protocol.buffer_updated(count)
            else:
                assert isinstance(protocol, asyncio.Protocol)
                data, self._inbox = bytes(self._inbox), bytearray()
                protocol.data_received(data)
        if self._eof and not self._inbox and not self._paused and not self.is_over and protocol is not None:
            self._eof = False
            keep = protocol.eof_received() if hasattr(protocol, "eof_received") else False
            if not keep:
                self.close()

    def _lose(self, error: Exception | None) -> None:
        if self.is_over:
            return
        self.is_over = self._closing = True
        self.fabric.transports.pop(self, None)
        self._inbox.clear()
        if self.protocol is not None:
            self.protocol.connection_lost(error)

    # Its end

    def is_closing(self) -> bool:
        """Whether it is closed, or about to be."""
        return self._closing

    def close(self) -> None:
        """Send what was written, and end."""
        if not self._closing:
            self._closing = True
            if not self._eof_sent:
                self._send(None)
            self.process.call_soon(self._lose, None)

    def abort(self) -> None:
        """End at once; the peer sees a reset."""
        if not self.is_over:
            if not self._closing:
                self._send(ConnectionResetError("Connection reset by peer"))
            self._closing = True
            self.process.call_soon(self._lose, None)

    def break_off(self) -> None:
        """The connection is reset, at both ends."""
        error = ConnectionResetError("Connection reset by peer")
        for end in (self, self.peer):
            if end is not None:
                end._sent.clear()
                end.receive(error)

    def vanish(self) -> None:
        """The process is dead: its machine resets the connection, if it still has power."""
        self.is_over = self._closing = True
        self.fabric.transports.pop(self, None)
        if self.host not in self.fabric.dark:
            self._send(ConnectionResetError("Connection reset by peer"))
        else:
            self._sent.clear()

    def write_eof(self) -> None:
        """Say that no more comes."""
        if not self._eof_sent and not self._closing:
            self._eof_sent = True
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
        """Nothing is ever held back on this side."""
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """There is always room."""
