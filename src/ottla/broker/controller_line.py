"""The way to the active controller, wherever it is: in this process, or at another node.

C1  A question ends with an answer, or with why there is none; it is never sent twice from here, since what became of
    the first is not known. Whoever asks again knows that it does no harm.
C2  NOT_CONTROLLER means that the node we asked leads no more: nobody is taken to lead until the metadata says who.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from ottla.broker.api import Api, Pending
from ottla.channel.connection import Connection
from ottla.channel.link import LinkLost
from ottla.channel.peers import Peer
from ottla.wire.errors import ErrorCode
from ottla.wire.header import RequestHeader, ResponseHeader
from ottla.wire.message import Message
from ottla.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from ottla.wire.messages.principal import DefaultPrincipalData

M = TypeVar("M", bound=Message)

# Who asked, as Kafka's controllers expect it: a version, then the principal. Nobody is known by name yet.
_ANYBODY = bytes(2) + bytes(
    DefaultPrincipalData(type="User", name="ANONYMOUS", token_authenticated=False).encode(0)
)
_PATIENCE_S = 30.0  # request.timeout.ms of a client
_AGAIN_S = 0.05


class ControllerLine(Protocol):
    """Asks the active controller. Nobody may be that at the moment: then the answer is an Exception, soon."""

    def ask(self, request: Message, response: type[M], answered: Callable[[M | Exception], object]) -> None:
        """Ask; `answered` is called once with the answer, or with why there is none."""
        ...


class Line:
    """The line of one node. `peer(node_id)` is the connection to a controller, None where its address is not known."""

    def __init__(
        self,
        broker: Any,
        apis: Mapping[int, Api],
        peer: Callable[[int], Peer | None],
        host: bytes = bytes([127, 0, 0, 1]),
    ) -> None:
        self._broker = broker
        self._apis = apis
        self._peer = peer
        self._host = host
        self._inside = Inside()

    def ask(self, request: Message, response: type[M], answered: Callable[[M | Exception], object]) -> None:
        """Ask; `answered` is called once with the answer, or with why there is none."""
        broker = self._broker
        if broker.quorum.is_active:
            key = request.api_key
            assert key is not None
            api = self._apis[key]
            reply: Any = api.handle(request, api.versions[-1], self._inside, broker)  # type: ignore[arg-type]
            if isinstance(reply, Pending):
                reply.then(answered)  # type: ignore[arg-type]
            else:
                broker.call_soon(lambda: answered(reply))
            return
        peer = self._leader()
        if peer is None:
            broker.call_soon(lambda: answered(LinkLost("nobody is known to be the active controller")))
        else:
            peer.ask(request, response, answered)

    def pass_on(self, api: Api, request: Message, version: int, connection: Connection) -> Pending:
        """Have the active controller answer what a client has asked us (KIP-590).

        While there is none, or it falls silent, the next is waited for, as long as a client waits.
        """
        head = RequestHeader(
            request_api_key=api.key,
            request_api_version=version,
            correlation_id=0,
            client_id=bytes(connection.session.client_id).decode(errors="replace"),
        )
        sealed = EnvelopeRequest(
            request_data=head.encode(api.facts.request_header_version(version)) + request.encode(version),
            request_principal=_ANYBODY,
            client_host_address=self._host,
        )
        pending = Pending()
        broker = self._broker
        deadline = broker.clock.monotonic() + _PATIENCE_S

        def here() -> None:
            # We lead by now; or we do not, and its own handler says so for each thing that was asked for.
            reply: Any = api.handle(request, version, connection, broker)
            if isinstance(reply, Pending):
                reply.then(pending.resolve)
            else:
                pending.resolve(reply)

        def again() -> None:
            if broker.quorum.is_active or broker.clock.monotonic() >= deadline:
                here()
            else:
                broker.call_later(_AGAIN_S, send)

        def send() -> None:
            peer = self._leader()
            if peer is None:
                again()
            else:
                peer.ask(sealed, EnvelopeResponse, opened)

        def opened(answer: EnvelopeResponse | Exception) -> None:
            if isinstance(answer, Exception) or answer.error_code == ErrorCode.NOT_CONTROLLER:
                again()
                return
            if answer.error_code or answer.response_data is None:
                here()
                return
            data = answer.response_data
            _, position = ResponseHeader.decoder(api.facts.response_header_version(version))(
                data, 0, len(data)
            )
            message, _ = api.response.decoder(version)(data, position, len(data))
            pending.resolve(message)

        send()
        return pending

    def _leader(self) -> Peer | None:
        leader = self._broker.quorum.leader_id
        return None if leader < 0 or leader == self._broker.node_id else self._peer(leader)


class Inside:
    """Who asks from within this process, where a handler expects a connection."""

    listener = ""
    peer = "127.0.0.1"
    closed = False

    def __init__(self) -> None:
        self.session = self
        self.client_id = bytearray(b"broker")
        self.on_close: list[Callable[[], None]] = []


def forwarded(api: Api) -> Api:
    """The API as a broker serves it that need not be the active controller."""
    own = api.handle

    def handle(request: Any, version: int, connection: Connection, broker: Any) -> Any:
        if broker.line is None or broker.quorum.is_active:
            return own(request, version, connection, broker)
        return broker.line.pass_on(api, request, version, connection)

    return Api(
        api.request,
        api.response,
        handle,
        versions=api.versions,
        advertised_from=api.advertised_from,
        long=api.long,
        long_bytes=api.long_bytes,
    )
