"""How simulated processes listen and connect; the links are a `Fabric`, the ends of a connection `SimTransport`.

T4  A machine answers for a process that is stopped: connections are accepted and bytes received, and wait.
"""

import asyncio
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from ottla.sim.cluster.fabric import Fabric
from ottla.sim.cluster.transport import SimTransport
from ottla.sim.loop import Process
from ottla.world.network import SYSTEMS_CHOICE, Push

P = TypeVar("P", bound=asyncio.BaseProtocol)


class SimListening:
    """A port of a simulated process."""

    def __init__(
        self,
        fabric: Fabric,
        process: Process,
        host: str,
        port: int,
        protocol: Callable[[], asyncio.BaseProtocol],
    ) -> None:
        self._fabric = fabric
        self.process = process
        self.host = host
        self.port = port
        self.protocol = protocol
        self.is_serving = False
        self.waiting: list[Callable[[], None]] = []

    async def serve(self) -> None:
        """Accept from now on."""
        self.is_serving = True
        waiting, self.waiting = self.waiting, []
        for accept in waiting:
            accept()

    async def stop(self) -> None:
        """Accept no more."""
        self._fabric.listening.pop((self.host, self.port), None)


class SimNetwork:
    """The network, as one process has it."""

    def __init__(self, fabric: Fabric, process: Process, host: str) -> None:
        self._fabric = fabric
        self._process = process
        self.host = host

    async def listen(
        self, host: str, port: int, protocol: Callable[[], asyncio.BaseProtocol], *, backlog: int = 50
    ) -> SimListening:
        """Bind; port 0 takes a free one. Nobody is accepted before `serve`."""
        address = (host, port or self._fabric.new_port())
        if address in self._fabric.listening:
            raise OSError(98, "Address already in use")
        listening = SimListening(self._fabric, self._process, *address, protocol)
        self._fabric.listening[address] = listening
        return listening

    async def connect(
        self,
        host: str,
        port: int,
        protocol: Callable[[], P],
        *,
        send_bytes: int = SYSTEMS_CHOICE,
        receive_bytes: int = SYSTEMS_CHOICE,
    ) -> P:
        """Connect and return the protocol; OSError says why not."""
        fabric, process = self._fabric, self._process
        outcome: asyncio.Future[SimTransport] = process.create_future()
        own = SimTransport(fabric, process, self.host, (host, port))
        address = (self.host, fabric.new_port())

        def knock() -> None:
            """Our word has reached the machine."""
            listening = fabric.listening.get((host, port))
            if fabric.is_cut(self.host, host):
                fabric.hold(
                    self.host, host, lambda: fabric.at(fabric.timeline.now + fabric.retransmission(), knock)
                )
            elif listening is None:
                answer(None)
            else:
                theirs = SimTransport(fabric, listening.process, host, address)
                theirs.peer, own.peer = own, theirs

                def accept() -> None:
                    def begin() -> None:
                        if theirs.is_over:
                            return
                        theirs.protocol = listening.protocol()
                        theirs.protocol.connection_made(theirs)
                        theirs._deliver()

                    listening.process.call_soon(begin)

                if listening.is_serving:
                    accept()
                else:
                    listening.waiting.append(accept)
                answer(theirs)

        def answer(theirs: SimTransport | None) -> None:
            """Their word has reached us."""
            if fabric.is_cut(host, self.host):
                fabric.hold(
                    host,
                    self.host,
                    lambda: fabric.at(fabric.timeline.now + fabric.retransmission(), answer, theirs),
                )
                return
            fabric.at(fabric.timeline.now + fabric.delay(host, self.host), tell, theirs)

        def tell(theirs: SimTransport | None) -> None:
            if process.is_dead:
                if theirs is not None:
                    theirs.receive(ConnectionResetError("Connection reset by peer"))
            else:
                process.call_soon(settle, theirs)

        def settle(theirs: SimTransport | None) -> None:
            if outcome.done():  # nobody waits any more
                own.abort()
            elif theirs is None:
                outcome.set_exception(ConnectionRefusedError(111, "Connection refused"))
            elif own.is_over:
                outcome.set_exception(ConnectionResetError(104, "Connection reset by peer"))
            else:
                made = protocol()
                own.protocol = made
                made.connection_made(own)
                own._deliver()
                outcome.set_result(own)

        fabric.at(fabric.timeline.now + fabric.delay(self.host, host), knock)
        try:
            await outcome
        except BaseException:
            own.abort()
            raise
        connected: Any = own.protocol
        return connected  # type: ignore[no-any-return]

    async def canonical(self, host: str) -> list[str]:
        """Return the only name a host has."""
        return [host]

    @staticmethod
    def pusher(transport: asyncio.BaseTransport) -> Push | None:
        """Return the way past what a transport keeps back, as there is one into a socket."""
        assert isinstance(transport, SimTransport)
        return transport.push

    @staticmethod
    def descriptors_max() -> int:
        """Return a number that nobody reaches: descriptors are not simulated."""
        return sys.maxsize
