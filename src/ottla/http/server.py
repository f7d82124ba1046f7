"""Serves an application on a port, over HTTP/1.1 and HTTP/2, with and without TLS.

    __init__ --start()--> SERVING --stop()--> STOPPED

V1  The port is bound before anything else, by us and for us alone: one that is taken raises OSError.
V2  A stop closes the port first, answers what is under way within the limit, and then ends what is left, so it takes
    no longer than the limit and two seconds.

The protocol is Granian's, which runs hyper in a thread of its own and calls the application on our loop. See
docs/adr/0060-the-http-stack.md for why, and for what `connection_guard` adds.
"""

import asyncio
from pathlib import Path
from typing import Any

import granian.net
from granian.constants import HTTPModes, Interfaces, SSLProtocols
from granian.http import HTTP1Settings, HTTP2Settings
from granian.server.embed import Server

from ottla.http.application import Application
from ottla.http.connection_guard import EVERY_S, ConnectionGuard
from ottla.http.limits import Limits
from ottla.http.tls import Tls
from ottla.world.accepted_sockets import AcceptedSockets
from ottla.world.listening_socket import ListeningSocket

_BACKLOG = 128
_STREAMS_MAX = 100
_GRACE_S = 1.0


class HttpServer:
    """One application on one port."""

    def __init__(
        self,
        application: Application[Any],
        host: str,
        port: int,
        *,
        limits: Limits | None = None,
        tls: Tls | None = None,
        has_http2: bool = True,
    ) -> None:
        self.application = application
        self.host = host
        self._port = port
        self._limits = limits or Limits()
        self._tls = tls
        self._has_http2 = has_http2

    @property
    def port(self) -> int:
        """The port that was bound."""
        return self._listening.port

    @property
    def address(self) -> str:
        """Where a browser finds it."""
        host = f"[{self.host}]" if ":" in self.host else self.host or "localhost"
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}"

    def start(self) -> None:
        """Bind the port and serve; OSError says why not."""
        loop = asyncio.get_running_loop()
        self._listening = ListeningSocket(self.host, self._port, backlog=_BACKLOG)
        self.guard = ConnectionGuard(
            AcceptedSockets(self._listening.port),
            connections_max=self._limits.connections_max,
            silence_s=self._limits.idle_s,
        )
        self._granian: Any = _EmbeddedServer(
            self._listening,
            self.application,
            **_protocol(self._limits, has_http2=self._has_http2),
            **_tls(self._tls),
        )
        self._serving = loop.create_task(self._granian.serve())
        self._guarding = loop.create_task(self._guard(loop))

    async def stop(self) -> None:
        """Refuse what is new, answer what is under way, then hang up."""
        self._listening.close()
        self._granian.stop()
        await self.application.stop(self._limits.stop_s)
        done, _ = await asyncio.wait([self._serving], timeout=_GRACE_S)
        self._guarding.cancel()
        if not done:
            self.guard.hang_up_on_all()
            await asyncio.wait([self._serving], timeout=_GRACE_S)
            self._serving.cancel()

    async def _guard(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            self.guard.check(loop.time())


class _EmbeddedServer(Server):
    """Granian's server on the running loop, on a socket that is bound already and is not shared."""

    def __init__(self, listening: ListeningSocket, application: Any, **options: Any) -> None:
        super().__init__(
            application, port=listening.port, interface=Interfaces.ASGINL, log_enabled=False, **options
        )
        self._listening = listening
        self._shd: Any

    def _init_shared_socket(self) -> None:
        # Granian would bind a port of its own with SO_REUSEPORT, which two processes can have at once.
        holder: Any = granian.net.SocketHolder  # type: ignore[attr-defined]
        self._shd = holder(self._listening.duplicate(), False, _BACKLOG)
        self._sfd = self._shd.get_fd()
        self._ssp = None


def _protocol(limits: Limits, *, has_http2: bool) -> dict[str, Any]:
    idle_ms = int(limits.idle_s * 1000)
    return {
        "http": HTTPModes.auto if has_http2 else HTTPModes.http1,
        "websockets": False,
        "backlog": _BACKLOG,
        # Limits are the application's and the guard's: here nobody is answered.
        "backpressure": limits.connections_max + limits.requests_max,
        "http1_settings": HTTP1Settings(
            header_read_timeout=idle_ms, max_buffer_size=max(8192, limits.head_bytes_max)
        ),
        "http2_settings": HTTP2Settings(
            max_headers_size=limits.head_bytes_max,
            max_concurrent_streams=_STREAMS_MAX,
            keep_alive_interval=idle_ms,
            keep_alive_timeout=max(1, int(limits.idle_s)),
            initial_stream_window_size=256 << 10,
        ),
    }


def _tls(tls: Tls | None) -> dict[str, Any]:
    if tls is None:
        return {}
    return {
        "ssl_cert": Path(tls.certificate),
        "ssl_key": Path(tls.key),
        "ssl_key_password": tls.key_password,
        "ssl_ca": Path(tls.authorities) if tls.authorities else None,
        "ssl_client_verify": tls.needs_client_certificate,
        "ssl_protocol_min": SSLProtocols(tls.protocol_min),
    }
