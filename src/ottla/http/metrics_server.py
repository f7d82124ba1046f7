"""The small HTTP/1.1 server of a node: GET and HEAD of `/metrics`, `/health` and `/ready`.

A node serves its metrics itself, on its own loop, and does not load the stack that the services use: that would make it
start later and weigh more (docs/adr/0060-the-http-stack.md).

P1  A peer costs a bounded head (16 KB), and gets no second page before it has taken the first.
P2  At most 16 peers are connected at a time. For the next one the peer goes that has been idle, or has taken nothing of
    its page, for longest; only where all others are taking theirs is it told 503 and let go.
P3  A peer that has sent no whole request for 60 seconds, or has not taken a page within 30, is let go, and whatever it
    does not take of what was written goes with it after 5 seconds.
P4  A page is made in pieces, a piece in a turn of the loop, so that a large one holds up nobody.
P5  A piece is made once the peer has taken those before it: of all pages together no more is in memory than a piece and
    64 KB for each peer.

The protocol itself is h11's; nothing here parses a byte.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import h11

from ottla.http.metrics.text import CONTENT_TYPE
from ottla.world.network import Listening, Network

_HEAD_BYTES_MAX = 16 << 10
_PEERS_MAX = 16
_PATIENCE_S = 60.0
_PAGE_S = 30.0
_FAREWELL_S = 5.0
_PLAIN = "text/plain; charset=utf-8"
_JSON = "application/json"
_HEALTH = (b"/health", b"/healthz")

# Status, content type, body: whole, or in pieces, which are sent as they are made.
Answer = tuple[int, str, bytes | Iterator[bytes]]


class Timers(Protocol):
    """The loop, as far as a peer needs it."""

    def call_later(self, delay: float, callback: Callable[[], object]) -> Any:
        """Call back after `delay` seconds, unless the result is cancelled before."""
        ...


class MetricsServer:
    """Serves a page to whoever asks. `page` is called for each scrape, on the loop, and gives it piece by piece.

    `problems` says why the node is not ready, by what the problem is with; nothing when it is.
    """

    def __init__(
        self,
        page: Callable[[], Iterator[bytes]],
        timers: Timers,
        problems: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._page = page
        self._problems = problems
        self.timers = timers
        self.peers: dict[Peer, None] = {}  # who was served longest ago first
        self._listening: Listening | None = None

    @property
    def port(self) -> int:
        """The port that was bound."""
        assert self._listening is not None, "the server listens"
        return self._listening.port

    async def start(self, network: Network, host: str, port: int) -> None:
        """Listen; OSError says why not."""
        self._listening = await network.listen(host, port, lambda: Peer(self))
        await self._listening.serve()

    async def stop(self) -> None:
        """Accept no more, and hang up on everybody."""
        if self._listening is not None:
            await self._listening.stop()
        for peer in tuple(self.peers):
            peer.hang_up()

    def answer(self, method: bytes, target: bytes) -> Answer:
        """Say what there is at a target."""
        path = target.partition(b"?")[0]
        if path not in (b"/metrics", b"/ready", *_HEALTH):
            return 404, _PLAIN, b"there is /metrics, /health and /ready\n"
        if method not in (b"GET", b"HEAD"):
            return 405, _PLAIN, b"only GET and HEAD\n"
        if path == b"/metrics":
            return 200, CONTENT_TYPE, self._page()
        if path in _HEALTH:
            return 200, _JSON, b'{"status":"live"}'
        reasons = dict(self._problems())
        body = json.dumps({"ready": not reasons, "reasons": reasons}).encode()
        return 503 if reasons else 200, _JSON, body

    def admit(self, peer: "Peer") -> bool:
        """Take a peer in, if need be for one that keeps others from their page (P2)."""
        if len(self.peers) >= _PEERS_MAX:
            idle = next((each for each in self.peers if not each.is_taking), None)
            if idle is None:
                return False
            idle.abort()
        self.peers[peer] = None
        return True

    def served(self, peer: "Peer") -> None:
        """A peer has got an answer."""
        if peer in self.peers:
            del self.peers[peer]
            self.peers[peer] = None


class Peer(asyncio.Protocol):
    """One HTTP connection."""

    def __init__(self, server: MetricsServer) -> None:
        self._server = server
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_BYTES_MAX)
        self._transport: Any = None
        self._patience: Any = None
        self._request: h11.Request | None = None
        self._pieces: Iterator[bytes] | None = None  # what is left of the page
        self._writable = True

    @property
    def is_taking(self) -> bool:
        """Whether it is served, and takes what it is sent."""
        return self._pieces is not None and self._writable

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the peer in, or turn it away."""
        self._transport = transport
        if not self._server.admit(self):
            self._refuse(503)
            return
        self._wait(_PATIENCE_S, self.hang_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the peer."""
        self._server.peers.pop(self, None)
        self._pieces = None
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def data_received(self, data: bytes) -> None:
        """Feed the protocol, and answer every whole request."""
        self._http.receive_data(data)
        self._serve()

    def eof_received(self) -> bool:
        """Hang up when the peer does."""
        return False

    def pause_writing(self) -> None:
        """Serve a peer no more that does not take its page."""
        self._writable = False
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Go on with what the peer sent meanwhile."""
        self._writable = True
        self._transport.resume_reading()
        if self._pieces is not None:
            self._go_on()
        else:
            self._serve()

    def hang_up(self) -> None:
        """Send what is written and close; what is not taken soon is not sent (P3)."""
        self._pieces = None
        self._transport.close()
        self._wait(_FAREWELL_S, self.abort)

    def abort(self) -> None:
        """Close at once, whatever was not sent."""
        self._server.peers.pop(self, None)
        self._transport.abort()

    def _serve(self) -> None:
        """Take in what has arrived, up to a whole request; its answer goes on from there."""
        try:
            while self._writable and self._step():
                pass
        except h11.RemoteProtocolError as error:
            self._refuse(error.error_status_hint)

    def _step(self) -> bool:
        """Take one event; False when there is nothing more to do now."""
        http = self._http
        event = http.next_event()
        if isinstance(event, h11.Request):
            self._request = event
        elif isinstance(event, h11.EndOfMessage):
            assert self._request is not None
            self._collect(self._request)
        # A body that comes with a request is read and forgotten.
        return isinstance(event, h11.Request | h11.Data)

    def _collect(self, request: h11.Request) -> None:
        """Begin with the answer; its pieces follow as the peer takes them (P5)."""
        status, content_type, body = self._server.answer(request.method, request.target)
        headers = [("content-type", content_type)]
        if isinstance(body, bytes):
            headers.append(("content-length", str(len(body))))
            body = iter([body])
        else:
            headers.append(("transfer-encoding", "chunked"))
        if status == 405:
            headers.append(("allow", "GET, HEAD"))
        self._send(h11.Response(status_code=status, headers=headers))
        self._pieces = body if request.method != b"HEAD" else iter(())
        self._wait(_PAGE_S, self.abort)
        self._server.timers.call_later(0, self._go_on)

    def _go_on(self) -> None:
        """Send the next piece, or the end, unless the peer has not taken what came before."""
        if self._pieces is None or not self._writable:
            return
        try:
            piece = next(self._pieces, None)
        except Exception:
            self.abort()  # it is not told a part for the whole
            raise
        if piece is None:
            self._pieces = None
            self._send(h11.EndOfMessage())
            self._server.served(self)
            self._finish()
            return
        if piece:
            self._send(h11.Data(data=piece))
        if self._writable:
            self._server.timers.call_later(0, self._go_on)

    def _finish(self) -> None:
        """Go on with the next request, if the peer may send one."""
        if self._http.our_state is h11.MUST_CLOSE:
            self.hang_up()
            return
        self._http.start_next_cycle()
        self._wait(_PATIENCE_S, self.hang_up)
        self._serve()

    def _refuse(self, status: int) -> None:
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            headers = [("content-length", "0"), ("connection", "close")]
            self._send(h11.Response(status_code=status, headers=headers))
            self._send(h11.EndOfMessage())
        self.hang_up()

    def _send(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data:
            self._transport.write(data)

    def _wait(self, seconds: float, then: Callable[[], None]) -> None:
        if self._patience is not None:
            self._patience.cancel()
        self._patience = self._server.timers.call_later(seconds, then)
