"""What an API is: its messages, its versions, its handler; and the reply that is not ready yet."""

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from ottla.channel.connection import Connection
from ottla.wire.apis import BY_KEY
from ottla.wire.message import Message

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.dispatch import Dispatcher, Route

# Handlers are plain functions: (request, version, connection, broker) -> reply. The request is of the API's own
# class, so each handler names it; here it can only be Any.
Handler = Callable[[Any, int, "Connection", "Broker"], "Message | Pending | None"]

# A way past the codec for requests of a common form: (buffer, position, end, correlation id, version, broker) -> the
# reply as it is written, or None for a request of another form.
Express = Callable[[bytearray, int, int, int, int, "Broker"], "list[Any] | Pending | None"]

# The way of a long request, in steps, each in a turn of the loop: (handler, request, version, connection, broker).
Long = Callable[
    [Handler, Any, int, "Connection", "Broker"], Generator[None, None, "Message | Pending | None"]
]
LONG_BYTES = 8 << 10


class Api:
    """One API of the protocol as this broker serves it.

    `advertised_from` may lie below the served versions (KAFKA-18659: librdkafka turns compression off unless Produce is
    advertised from 0). Requests of more than `long_bytes` are served by `long`, if there is one (`long_requests.py`).
    """

    __slots__ = (
        "advertised_from",
        "express",
        "facts",
        "handle",
        "key",
        "long",
        "long_bytes",
        "name",
        "request",
        "response",
        "versions",
    )

    def __init__(
        self,
        request: type[Message],
        response: type[Message],
        handle: Handler,
        *,
        versions: range | None = None,
        advertised_from: int | None = None,
        express: Express | None = None,
        long: Long | None = None,
        long_bytes: int = LONG_BYTES,
    ) -> None:
        assert request.api_key is not None, "only requests have a key"
        self.key: int = request.api_key
        self.facts = BY_KEY[self.key]
        self.name = self.facts.name
        self.request = request
        self.response = response
        self.handle = handle
        self.express = express
        self.long = long
        self.long_bytes = long_bytes
        self.versions = self.facts.stable_versions if versions is None else versions
        self.advertised_from = self.versions.start if advertised_from is None else advertised_from


class Pending:
    """A reply that waits for something. The handler returns it at once and resolves it later, exactly once."""

    __slots__ = (
        "_began",
        "_dispatcher",
        "_failed",
        "_failure",
        "_message",
        "_route",
        "_then",
        "connection",
        "correlation_id",
        "parts",
    )

    def __init__(self) -> None:
        self.parts: list[Any] | None = None
        self._message: Message | None = None
        self._failure: Exception | None = None
        self.connection: Connection | None = None
        self._then: Callable[[Message], object] | None = None
        self._failed: Callable[[Exception], object] | None = None

    def then(
        self,
        callback: Callable[[Message], object],
        failed: Callable[[Exception], object] | None = None,
    ) -> None:
        """Hand the answer to somebody within this process, instead of a connection; `failed` hears of a failure."""
        self._then, self._failed = callback, failed
        if self._message is not None:
            callback(self._message)
        elif self._failure is not None and failed is not None:
            failed(self._failure)

    def attach(
        self,
        connection: Connection,
        dispatcher: "Dispatcher",
        route: "Route",
        correlation_id: int,
        began: float,
    ) -> None:
        """Take a place in the connection's order of replies, for a request that came at `began`."""
        self.connection = connection
        self._dispatcher = dispatcher
        self._route = route
        self.correlation_id = correlation_id
        self._began = began
        connection.owe(self)
        message, self._message = self._message, None
        if message is not None:
            self.resolve(message)
        elif self._failure is not None:
            self.fail(self._failure)

    def resolve(self, message: Message) -> None:
        """Answer. Whoever calls is not the one to blame for an answer that cannot be written."""
        assert self._message is None, "a reply is resolved once"
        self._message = message
        connection = self.connection
        if connection is None:
            if self._then is not None:
                self._then(message)
            return
        route = self._route
        try:
            parts = route.parts(message, self.correlation_id)
        except Exception as error:  # noqa: BLE001
            self._dispatcher.failed(connection, route, error)
            return
        self.send(parts)

    def serve_in_steps(self, request: Message) -> bool:
        """Have the request that this is the reply to served in steps, if it is for a connection; that is mute."""
        if self.connection is None:
            return False
        self._dispatcher.long.begin(request, self._route, self.connection, self)
        return True

    def fail(self, error: Exception) -> None:
        """Give up on the request, for what was to answer it has broken: its client loses the connection."""
        if self.connection is None:
            self._failure = error
            if self._failed is not None:
                self._failed(error)
        else:
            self._dispatcher.failed(self.connection, self._route, error)

    def send(self, parts: list[Any]) -> None:
        """Answer a connection with what is encoded already."""
        self.parts = parts
        self.connection.settle(self)  # type: ignore[union-attr]
        self._route.took(self._dispatcher.now() - self._began)
