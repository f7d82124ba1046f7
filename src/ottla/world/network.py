"""Sockets: listening, and how many descriptors the process may hold."""

import asyncio
import fcntl
import os
import resource
import socket
import sys
import termios
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

P = TypeVar("P", bound=asyncio.BaseProtocol)

SYSTEMS_CHOICE = -1
"""The size of a buffer that nobody has chosen."""

# Hands buffers to the kernel and returns how many bytes it took.
Push = Callable[[list[Any]], int]


class Listening(Protocol):
    """A port that is ours."""

    host: str
    port: int

    async def serve(self) -> None:
        """Accept from now on."""
        ...

    async def stop(self) -> None:
        """Accept no more."""
        ...


class Network(Protocol):
    """Where connections come from."""

    async def listen(
        self, host: str, port: int, protocol: Callable[[], asyncio.BaseProtocol], *, backlog: int = 50
    ) -> Listening:
        """Bind; port 0 takes a free one. Nobody is accepted before `serve`."""
        ...

    async def connect(
        self,
        host: str,
        port: int,
        protocol: Callable[[], P],
        *,
        send_bytes: int = SYSTEMS_CHOICE,
        receive_bytes: int = SYSTEMS_CHOICE,
    ) -> P:
        """Connect and return the protocol; OSError says why not. The sizes are those of the socket's buffers."""
        ...

    async def canonical(self, host: str) -> list[str]:
        """Return the full names of a host's addresses; OSError when it has none."""
        ...

    def pusher(self, transport: asyncio.BaseTransport) -> Push | None:
        """Return a way past the transport straight into its socket, or None where there is none."""
        ...

    def descriptors_max(self) -> int:
        """Return how many descriptors, of files and of sockets, the process may have open."""
        ...


class Pusher:
    """A way past a transport straight into its socket. Whoever uses it makes sure that the transport is open and holds
    nothing back.
    """

    __slots__ = ("descriptor",)

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __call__(self, parts: list[Any]) -> int:
        """Return how many bytes the kernel took."""
        try:
            return os.writev(self.descriptor, parts)
        except OSError:
            return 0  # full, or broken: the transport finds out which


def unsent_bytes(push: Push | None) -> int:
    """Return how many bytes the kernel holds that the peer has not taken; 0 where that cannot be asked."""
    if not isinstance(push, Pusher):
        return 0
    try:
        return int.from_bytes(fcntl.ioctl(push.descriptor, termios.TIOCOUTQ, bytes(4)), sys.byteorder)
    except OSError:
        return 0


class RealListening:
    """A listening TCP socket on the running loop."""

    def __init__(self, server: asyncio.Server, host: str, port: int) -> None:
        self._server = server
        self.host = host
        self.port = port

    async def serve(self) -> None:
        """Accept from now on."""
        await self._server.start_serving()

    async def stop(self) -> None:
        """Accept no more."""
        self._server.close()


class RealNetwork:
    """TCP of the operating system."""

    async def listen(
        self, host: str, port: int, protocol: Callable[[], asyncio.BaseProtocol], *, backlog: int = 50
    ) -> RealListening:
        """Bind; port 0 takes a free one. OSError says why not. Nobody is accepted before `serve`."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            protocol, host or None, port, backlog=backlog, reuse_address=True, start_serving=False
        )
        bound = server.sockets[0].getsockname()[1]
        return RealListening(server, host, bound)

    async def connect(
        self,
        host: str,
        port: int,
        protocol: Callable[[], P],
        *,
        send_bytes: int = SYSTEMS_CHOICE,
        receive_bytes: int = SYSTEMS_CHOICE,
    ) -> P:
        """Connect to whichever address of the host answers, and return the protocol; OSError says why not."""
        if "\0" in host:  # the loop would look up what stands before it
            raise socket.gaierror(socket.EAI_NONAME, f"no host name: {host!r}")
        try:
            transport, made = await asyncio.get_running_loop().create_connection(protocol, host, port)
        except (ValueError, OverflowError) as error:  # a label that is too long, a port that cannot be
            raise socket.gaierror(socket.EAI_NONAME, f"cannot connect to {host!r}:{port}: {error}") from error
        connected = transport.get_extra_info("socket")
        for option, size in ((socket.SO_SNDBUF, send_bytes), (socket.SO_RCVBUF, receive_bytes)):
            if size != SYSTEMS_CHOICE:
                connected.setsockopt(socket.SOL_SOCKET, option, size)
        return made

    async def canonical(self, host: str) -> list[str]:
        """Return the full names of a host's addresses; OSError when it has none."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        names = [(await loop.getnameinfo((str(address[0]), 0)))[0] for *_, address in found]
        return list(dict.fromkeys(names))

    @staticmethod
    def pusher(transport: asyncio.BaseTransport) -> Push | None:
        """Return a way past the transport straight into its socket, or None where there is none, as under TLS.

        A loop that gathers writes sends them at the end of its turn, one connection in any order after another.
        """
        if transport.get_extra_info("sslcontext") is not None:
            return None
        return Pusher(transport.get_extra_info("socket").fileno())

    @staticmethod
    def descriptors_max() -> int:
        """Return how many descriptors, of files and of sockets, the process may have open."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def host_name() -> str:
    """Return the name other machines know this one by, as far as it knows itself."""
    return socket.getfqdn()


def free_port(host: str = "127.0.0.1") -> int:
    """Return a TCP port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Say whether a TCP port can be listened on now."""
    with socket.socket() as probe:
        # As a server binds it: connections that ended a moment ago are in nobody's way.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


def is_served(host: str, port: int, timeout_s: float = 5.0) -> bool:
    """Say whether somebody accepts connections there."""
    try:
        with socket.create_connection((host, port), timeout=timeout_s):
            return True
    except OSError:
        return False


def raise_descriptor_limit() -> int:
    """Allow as many descriptors as the system lets us have, and return that number."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
