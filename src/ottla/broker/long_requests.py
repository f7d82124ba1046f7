"""Long requests: each served in many turns of the loop, and others in between.

L1  One turn of the loop does one step for all long requests together, however many there are; RUNNING_MAX of them take
    turns, the others wait, undecoded, the shortest first.
L2  A connection whose long request is under way is mute, so that it has no more than one, and what it asks next is
    served once this is answered.
L3  A request whose client has gone is given up at its next step.
L4  The bytes that wait count in the budget of requests.
L5  A short request whose handler sees that its answer will be long is served likewise (`serve_in_steps`).

    add() --its turn--> decode --> steps of the handler --> encode, piece by piece --> answered, unmute()
"""

from collections import deque
from collections.abc import Callable, Generator
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any

from ottla.broker.api import Pending
from ottla.wire.errors import ProtocolError
from ottla.wire.message import Message
from ottla.wire.piecewise import encode_piecewise, is_long

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.dispatch import Dispatcher, Route
    from ottla.channel.connection import Connection

RUNNING_MAX = 2
# Answers a request in one turn.
AtOnce = Callable[[], Message | Pending]
PIECE = 500  # elements of an answer that are encoded in a turn


class LongRequests:
    """All that are under way at one dispatcher."""

    __slots__ = ("_broker", "_dispatcher", "_is_scheduled", "_numbers", "_running", "_waiting")

    def __init__(self, dispatcher: "Dispatcher", broker: "Broker") -> None:
        self._dispatcher = dispatcher
        self._broker = broker
        self._waiting: list[tuple[int, int, LongRequest]] = []
        self._numbers = count()
        self._running: deque[LongRequest] = deque()
        self._is_scheduled = False

    def __len__(self) -> int:
        return len(self._running) + len(self._waiting)

    def add(
        self, data: bytearray, route: "Route", connection: "Connection", correlation_id: int, began: float
    ) -> None:
        """Serve a request; the bytes are what follows its header."""
        pending = Pending()
        pending.attach(connection, self._dispatcher, route, correlation_id, began)
        request = LongRequest(data, route, connection, pending, self)
        connection.mute()
        answers = connection.connections.answers
        if answers.is_full and not (route.is_modest and answers.total < answers.modest_max):
            connection.wait_for_room(lambda: self._wait(request))
        else:
            self._wait(request)

    def begin(self, request: Message, route: "Route", connection: "Connection", pending: Pending) -> None:
        """Serve a short request whose answer will be long, for which `pending` stands already."""
        self._wait(LongRequest(bytearray(), route, connection, pending, self, request))

    def _wait(self, request: "LongRequest") -> None:
        heappush(self._waiting, (request.size_bytes, next(self._numbers), request))
        self._schedule()

    def go_on(self, request: "LongRequest") -> None:
        """A request that waited for its answer has steps to do again."""
        self._running.append(request)
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._broker.call_soon(self._turn)

    def _turn(self) -> None:
        """Do one step (L1)."""
        self._is_scheduled = False
        running = self._running
        if self._waiting and len(running) < RUNNING_MAX:
            running.append(heappop(self._waiting)[2])
        if running:
            request = running.popleft()
            if request.step():
                running.append(request)
        if running or self._waiting:
            self._schedule()

    def malformed(self, connection: "Connection", error: Exception) -> None:
        """What was decoded is no request."""
        self._dispatcher.malformed(connection, error)

    def failed(self, connection: "Connection", route: "Route", error: Exception) -> None:
        """A step has broken."""
        self._dispatcher.failed(connection, route, error)

    def handle(
        self, request: Message, route: "Route", connection: "Connection"
    ) -> Generator[None, None, Any]:
        """Return the steps of the handler."""
        assert route.long is not None
        return route.long(route.handle, request, route.version, connection, self._broker)


def serve_in_steps(
    request: Message, connection: "Connection", broker: "Broker", at_once: AtOnce
) -> Pending:
    """Return what a handler answers that has seen that its answer will be long (L5).

    If it turns out that the answer is for somebody within this process, it is made `at_once`.
    """
    pending = Pending()
    connection.mute()

    def begin() -> None:
        if pending.serve_in_steps(request):
            return
        connection.unmute()
        reply = at_once()
        if isinstance(reply, Pending):
            reply.then(pending.resolve, pending.fail)
        else:
            pending.resolve(reply)

    broker.call_soon(begin)
    return pending


class LongRequest:
    """One request, from its bytes to its answer."""

    __slots__ = ("_all", "_connection", "_data", "_pending", "_request", "_route", "_steps", "size_bytes")

    def __init__(
        self,
        data: bytearray,
        route: "Route",
        connection: "Connection",
        pending: Pending,
        all: LongRequests,
        request: Message | None = None,
    ) -> None:
        """`data` is what is to be decoded, unless the `request` is there."""
        self._request = request
        self.size_bytes = len(data)
        self._data = data
        self._route = route
        self._connection = connection
        self._pending = pending
        self._all = all
        self._steps = self._serve()
        connection.connections.requests.add_queued(self.size_bytes)
        connection.on_close.append(self._drop)

    def step(self) -> bool:
        """Do the next step, and say whether there may be more now."""
        if not self._connection.closed:
            try:
                next(self._steps)
                return True
            except StopIteration:
                return False
            except Exception as error:  # noqa: BLE001  # the fault is ours
                self._all.failed(self._connection, self._route, error)
        self._steps.close()
        self._drop()
        return False

    def _drop(self) -> None:
        """Let the bytes go: they are decoded, or nobody waits any more."""
        data, self._data = self._data, bytearray()
        if data:
            self._connection.connections.requests.add_queued(-len(data))

    def _serve(self) -> Generator[None, None, None]:
        route, connection = self._route, self._connection
        request, self._request = self._request, None
        if request is None:
            try:
                request, _ = route.decode(self._data, 0, len(self._data))
            except ProtocolError as error:
                self._all.malformed(connection, error)
                return
        if self._drop in connection.on_close:
            connection.on_close.remove(self._drop)
        self._drop()
        yield
        reply = yield from self._all.handle(request, route, connection)
        del request
        if reply is None:
            self._send([])
        elif isinstance(reply, Pending):
            reply.then(self._answered, self._failed)
        else:
            yield
            yield from self._encode(reply)

    def _answered(self, message: Message) -> None:
        if not self._connection.closed:
            self._steps = self._encode(message)
            self._all.go_on(self)

    def _failed(self, error: Exception) -> None:
        if not self._connection.closed:
            self._all.failed(self._connection, self._route, error)

    def _encode(self, message: Message) -> Generator[None, None, None]:
        route = self._route
        if not is_long(message, route.version, PIECE):
            self._send(route.parts(message, self._pending.correlation_id))
            return
        body = []
        for piece in encode_piecewise(message, route.version, PIECE):
            body.append(piece)
            yield
        self._send([route.head(sum(map(len, body)), self._pending.correlation_id), *body])

    def _send(self, parts: list[Any]) -> None:
        self._pending.send(parts)
        if not self._connection.closed:
            self._connection.unmute()
