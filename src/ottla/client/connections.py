"""The connections of a client: one to each broker. They are opened when first needed, and reopened after a pause.

N1  Client and broker agree on the version of each request before it is sent: the highest that both support (KIP-35).
N2  A request is sent once. The caller decides about retries.
N3  Nothing is sent to a broker while it throttles this client (throttle_time_ms, KIP-219).
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from ottla import __version__
from ottla.channel.link import Link, LinkLost
from ottla.client.backoff import Backoff
from ottla.client.errors import ClientError, Closed, Disconnected, Malformed, TimedOut, Unsupported, refused
from ottla.client.shared_task import start_shared, wait_shared
from ottla.wire.apis import BY_KEY
from ottla.wire.errors import ErrorCode, ProtocolError
from ottla.wire.message import Message
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.world.entropy import Entropy, RealEntropy
from ottla.world.network import SYSTEMS_CHOICE, Network, RealNetwork

M = TypeVar("M", bound=Message)


class Node(NamedTuple):
    """A broker, or a bootstrap server with a negative id."""

    id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(slots=True, eq=False)
class BrokerConnection:
    """The connection to one broker, with the versions it supports."""

    node: Node
    backoff: Backoff
    connect_timeout: Backoff  # how long connecting may take; it grows with each timeout
    link: Link | None = None
    versions: dict[int, range] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    connecting: "asyncio.Task[None] | None" = None
    reconnect_at: float = 0.0
    throttled_until: float = 0.0
    used_at: float = 0.0

    @property
    def is_ready(self) -> bool:
        """Whether the connection is open and its versions are known (N1)."""
        return self.connecting is None and self.link is not None and self.link.is_open


class ClientConnections:
    """The connections of one client by broker id. `settings` are a client's, under Kafka's names."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        network: Network | None = None,
        entropy: Entropy | None = None,
    ) -> None:
        self._settings = settings
        self.network: Network = network or RealNetwork()
        self._entropy: Entropy = entropy or RealEntropy()
        self._timeout_s: float = settings["request.timeout.ms"] / 1000
        self._connections: dict[int, BrokerConnection] = {}
        self._closed = False
        self.client_id: str = settings["client.id"] or "ottla"

    # Brokers

    def learn(self, nodes: Iterable[Node]) -> None:
        """Set the brokers of the cluster. Connections to all others are closed."""
        named = {node.id: node for node in nodes}
        for node_id, connection in tuple(self._connections.items()):
            node = named.get(node_id)
            if node is None or (node.host, node.port) != (connection.node.host, connection.node.port):
                del self._connections[node_id]
                self._drop(
                    connection,
                    Disconnected(
                        f"broker {node_id} is not at {connection.node.host}:{connection.node.port} any more"
                    ),
                )
        for node in named.values():
            if node.id not in self._connections:
                connect_timeout = self._backoff("socket.connection.setup.timeout")
                self._connections[node.id] = BrokerConnection(
                    node, self._backoff("reconnect.backoff"), connect_timeout
                )
            else:
                self._connections[node.id].node = node

    def _backoff(self, name: str) -> Backoff:
        settings = self._settings
        return Backoff(settings[f"{name}.ms"], settings[f"{name}.max.ms"], self._entropy)

    def retry_backoff(self) -> Backoff:
        """Return a new backoff between retries."""
        return self._backoff("retry.backoff")

    @property
    def nodes(self) -> list[Node]:
        """All known brokers."""
        return [connection.node for connection in self._connections.values()]

    def least_loaded(self, but: frozenset[int] = frozenset()) -> int | None:
        """Return the connected broker with the fewest requests in flight, or else any broker."""
        now = self._now()
        best: tuple[int, float, float, int] | None = None
        for node_id, connection in self._connections.items():
            if node_id in but:
                continue
            if connection.is_ready and connection.link is not None:
                rank = (0, float(connection.link.in_flight), 0.0, node_id)
            else:
                rank = (
                    1 if connection.reconnect_at <= now else 2,
                    max(connection.reconnect_at - now, 0.0),
                    self._entropy.random(),
                    node_id,
                )
            if best is None or rank < best:
                best = rank
        return None if best is None else best[3]

    # Asking

    async def ask(
        self,
        node_id: int,
        request: Message,
        response: type[M],
        *,
        timeout_ms: float | None = None,
        newest: int | None = None,
    ) -> M:
        """Send a request to a broker and return its answer. The version is the highest of both, `newest` at most."""
        connection = await self.connected(node_id)
        version = self.version(node_id, type(request), newest=newest)
        if connection.throttled_until > self._now():
            await asyncio.sleep(connection.throttled_until - self._now())
        timeout_s = self._timeout_s if timeout_ms is None else timeout_ms / 1000
        return await self._ask(connection, request, response, version, timeout_s)

    async def connected(self, node_id: int) -> BrokerConnection:
        """Connect to a broker if necessary, and return its connection. Raises Disconnected."""
        if self._closed:
            raise Closed("the client is closed")
        connection = self._connections.get(node_id)
        if connection is None:
            raise Disconnected(f"broker {node_id} is not part of the cluster")
        connection.used_at = self._now()
        if connection.is_ready:
            return connection
        if connection.connecting is None:
            connection.connecting = start_shared(self._connect(connection))
        await wait_shared(connection.connecting, lambda: self._connection_gone(connection))
        return connection

    def _connection_gone(self, connection: BrokerConnection) -> ClientError:
        if self._closed:
            return Closed("the client is closed")
        return Disconnected(
            f"{connection.node.host}:{connection.node.port} is not part of the cluster any more"
        )

    def is_connected(self, node_id: int) -> bool:
        """Whether a request to this broker can be sent now."""
        connection = self._connections.get(node_id)
        return connection is not None and connection.is_ready and connection.throttled_until <= self._now()

    def version(self, node_id: int, request: type[Message], *, newest: int | None = None) -> int:
        """Return the version of a request for a connected broker. Raises Unsupported if there is none."""
        assert request.api_key is not None
        api, connection = BY_KEY[request.api_key], self._connections[node_id]
        ours, theirs = api.stable_versions, connection.versions.get(api.key, range(0))
        highest = min(ours[-1], theirs[-1] if theirs else -1, *([] if newest is None else [newest]))
        if highest not in ours or highest not in theirs:
            raise Unsupported(
                f"broker {node_id} at {connection.node.host}:{connection.node.port} serves {api.name} "
                + (f"in versions {theirs[0]} to {theirs[-1]}" if theirs else "not at all")
                + f", this client {ours[0]} to {ours[-1] if newest is None else newest}"
            )
        return highest

    def feature(self, name: str) -> int:
        """Return the finalized level of a feature, from the connected brokers."""
        return max((connection.features.get(name, 0) for connection in self._connections.values()), default=0)

    async def _ask(
        self,
        connection: BrokerConnection,
        request: Message,
        response: type[M],
        version: int,
        timeout_s: float,
    ) -> M:
        link = connection.link
        assert link is not None
        loop = asyncio.get_running_loop()
        future: asyncio.Future[M] = loop.create_future()

        def answered(outcome: M | Exception) -> None:
            if future.done():
                return
            if isinstance(outcome, Exception):
                future.set_exception(self._error_for(connection, outcome))
            else:
                future.set_result(outcome)

        def overdue() -> None:
            if not future.done():
                name = BY_KEY[request.api_key].name if request.api_key is not None else "a request"
                where = f"{connection.node.host}:{connection.node.port}"
                future.set_exception(TimedOut(f"{where} did not answer {name} within {timeout_s:g} s"))
                # Answers come in order, so the requests behind it would be late too.
                link.close(LinkLost(f"no answer to {name} within {timeout_s:g} s"))

        try:
            link.ask(request, response, version, answered)
        except ProtocolError as error:
            raise Unsupported(str(error)) from None
        timer = loop.call_later(timeout_s, overdue)
        try:
            answer = await future
        finally:
            timer.cancel()
        throttle_ms: int = getattr(answer, "throttle_time_ms", 0)
        if throttle_ms > 0:
            connection.throttled_until = self._now() + throttle_ms / 1000
        return answer

    def _error_for(self, connection: BrokerConnection, outcome: Exception) -> ClientError:
        where = f"{connection.node.host}:{connection.node.port}"
        if isinstance(outcome, ProtocolError):
            return Malformed(f"{where} sent what cannot be read: {outcome}")
        return Disconnected(f"{where}: {outcome}")

    # Connecting

    async def _connect(self, connection: BrokerConnection) -> None:
        try:
            wait_s = connection.reconnect_at - self._now()
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            timeout_s = connection.connect_timeout.failed()
            node = connection.node
            try:
                async with asyncio.timeout(timeout_s):
                    connection.link = await self.network.connect(
                        node.host,
                        node.port,
                        lambda: self._new_link(connection),
                        send_bytes=self._buffer_bytes("send.buffer.bytes"),
                        receive_bytes=self._buffer_bytes("receive.buffer.bytes"),
                    )
            except TimeoutError:
                raise Disconnected(
                    f"{node.host}:{node.port} did not accept within {timeout_s:.3g} s"
                ) from None
            except OSError as error:
                raise Disconnected(f"{node.host}:{node.port}: {error.strerror or error}") from None
            await self._negotiate_versions(connection)
            connection.backoff.succeeded()
            connection.connect_timeout.succeeded()
        except ClientError:
            connection.reconnect_at = self._now() + connection.backoff.failed()
            if connection.link is not None:
                connection.link.close()
                connection.link = None
            raise
        finally:
            connection.connecting = None

    def _buffer_bytes(self, name: str) -> int:
        """Return the configured size of a socket buffer. Otherwise the system chooses, and adapts it (ADR 0027)."""
        # A plain mapping has only values that were given.
        chosen = getattr(self._settings, "given", self._settings)
        size: int = self._settings[name] if name in chosen else SYSTEMS_CHOICE
        return size

    def _new_link(self, connection: BrokerConnection) -> Link:
        return Link(self.client_id, lambda link, reason: self._lost(connection, link))

    def _lost(self, connection: BrokerConnection, link: Link) -> None:
        if connection.link is link:
            connection.link = None
            connection.reconnect_at = self._now() + connection.backoff.failed()

    async def _negotiate_versions(self, connection: BrokerConnection) -> None:
        request = ApiVersionsRequest(client_software_name="ottla", client_software_version=__version__)
        version = request.versions[-1]
        answer = await self._ask(connection, request, ApiVersionsResponse, version, self._timeout_s)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            # An older broker answers in version 0, with the versions it supports.
            offered = next((each for each in answer.api_keys if each.api_key == request.api_key), None)
            version = min(version, offered.max_version if offered is not None else 0)
            answer = await self._ask(connection, request, ApiVersionsResponse, version, self._timeout_s)
        if answer.error_code:
            raise refused(answer.error_code, about=f"{connection.node.host}:{connection.node.port}")
        connection.versions = {
            each.api_key: range(each.min_version, each.max_version + 1) for each in answer.api_keys
        }
        connection.features = {each.name: each.max_version_level for each in answer.finalized_features}

    # Closing

    def close_idle(self) -> None:
        """Close connections that were not used for `connections.max.idle.ms`."""
        before = self._now() - self._settings["connections.max.idle.ms"] / 1000
        for connection in self._connections.values():
            if connection.link is not None and not connection.link.in_flight and connection.used_at < before:
                self._drop(connection, LinkLost("the connection was idle"))

    def close(self) -> None:
        """Close all connections. Requests without an answer end with Disconnected."""
        self._closed = True
        for connection in self._connections.values():
            self._drop(connection, LinkLost("the client was closed"))

    def _drop(self, connection: BrokerConnection, reason: Exception) -> None:
        if connection.connecting is not None:
            connection.connecting.cancel()
        if connection.link is not None:
            connection.link.close(reason)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
