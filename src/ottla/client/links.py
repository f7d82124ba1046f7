"""The connections of a client: one to each broker it needs, made when first needed, and made again after a pause.

N1  Both ends agree on a version of every request before the first is sent: the highest that both know (KIP-35).
N2  A request is sent once. Whether to try again is for those who know what a second time would do.
N3  A broker that asks for patience (throttle_time_ms) is left in peace for that long (KIP-219).
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from ottla import __version__
from ottla.channel.link import Link, LinkLost
from ottla.client.backoff import Backoff
from ottla.client.errors import ClientError, Closed, Disconnected, Malformed, TimedOut, Unsupported, refused
from ottla.client.joint import begin, join
from ottla.wire.apis import BY_KEY
from ottla.wire.errors import ErrorCode, ProtocolError
from ottla.wire.message import Message
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.world.entropy import Entropy, RealEntropy
from ottla.world.network import SYSTEMS_CHOICE, Network, RealNetwork

M = TypeVar("M", bound=Message)


class Node(NamedTuple):
    """A broker, or an address to begin with, whose id is negative."""

    id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(slots=True, eq=False)
class Peer:
    """What there is between this client and one broker."""

    node: Node
    backoff: Backoff
    patience: Backoff  # how long a connection may take: longer each time it took too long
    link: Link | None = None
    versions: dict[int, range] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    connecting: "asyncio.Task[None] | None" = None
    not_before: float = 0.0
    muted_until: float = 0.0
    used_at: float = 0.0

    @property
    def is_ready(self) -> bool:
        """Whether there is a connection, and both ends have agreed on versions (N1)."""
        return self.connecting is None and self.link is not None and self.link.is_open


class Links:
    """Connections by the id of the broker. `settings` are a client's, under Kafka's names."""

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
        self._peers: dict[int, Peer] = {}
        self._closed = False
        self.client_id: str = settings["client.id"] or "ottla"

    # Who there is

    def learn(self, nodes: Iterable[Node]) -> None:
        """Take in where brokers are now; those that are gone are left."""
        named = {node.id: node for node in nodes}
        for node_id, peer in tuple(self._peers.items()):
            node = named.get(node_id)
            if node is None or (node.host, node.port) != (peer.node.host, peer.node.port):
                del self._peers[node_id]
                self._drop(
                    peer,
                    Disconnected(f"broker {node_id} is not at {peer.node.host}:{peer.node.port} any more"),
                )
        for node in named.values():
            if node.id not in self._peers:
                patience = self._backoff("socket.connection.setup.timeout")
                self._peers[node.id] = Peer(node, self._backoff("reconnect.backoff"), patience)
            else:
                self._peers[node.id].node = node

    def _backoff(self, name: str) -> Backoff:
        settings = self._settings
        return Backoff(settings[f"{name}.ms"], settings[f"{name}.max.ms"], self._entropy)

    def retry_backoff(self) -> Backoff:
        """Return pauses between tries at a request."""
        return self._backoff("retry.backoff")

    @property
    def nodes(self) -> list[Node]:
        """Every broker known."""
        return [peer.node for peer in self._peers.values()]

    def least_loaded(self, but: frozenset[int] = frozenset()) -> int | None:
        """Return the broker to ask what any may answer: one that is connected and has little to do, else any."""
        now = self._now()
        best: tuple[int, float, float, int] | None = None
        for node_id, peer in self._peers.items():
            if node_id in but:
                continue
            if peer.is_ready and peer.link is not None:
                rank = (0, float(peer.link.in_flight), 0.0, node_id)
            else:
                rank = (
                    1 if peer.not_before <= now else 2,
                    max(peer.not_before - now, 0.0),
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
        """Send a request to a broker and return its answer, in the highest version both know, `newest` at most."""
        peer = await self.connected(node_id)
        version = self.version(node_id, type(request), newest=newest)
        if peer.muted_until > self._now():
            await asyncio.sleep(peer.muted_until - self._now())
        timeout_s = self._timeout_s if timeout_ms is None else timeout_ms / 1000
        return await self._ask(peer, request, response, version, timeout_s)

    async def connected(self, node_id: int) -> Peer:
        """Return what there is with a broker once it is connected; Disconnected when it cannot be."""
        if self._closed:
            raise Closed("the client is closed")
        peer = self._peers.get(node_id)
        if peer is None:
            raise Disconnected(f"broker {node_id} is not part of the cluster")
        peer.used_at = self._now()
        if peer.is_ready:
            return peer
        if peer.connecting is None:
            peer.connecting = begin(self._connect(peer))
        await join(peer.connecting, lambda: self._given_up(peer))
        return peer

    def _given_up(self, peer: Peer) -> ClientError:
        if self._closed:
            return Closed("the client is closed")
        return Disconnected(f"{peer.node.host}:{peer.node.port} is not part of the cluster any more")

    def is_connected(self, node_id: int) -> bool:
        """Whether a request to this broker would leave at once."""
        peer = self._peers.get(node_id)
        return peer is not None and peer.is_ready and peer.muted_until <= self._now()

    def version(self, node_id: int, request: type[Message], *, newest: int | None = None) -> int:
        """Return the version to ask a connected broker in; Unsupported when there is none."""
        assert request.api_key is not None
        api, peer = BY_KEY[request.api_key], self._peers[node_id]
        ours, theirs = api.stable_versions, peer.versions.get(api.key, range(0))
        highest = min(ours[-1], theirs[-1] if theirs else -1, *([] if newest is None else [newest]))
        if highest not in ours or highest not in theirs:
            raise Unsupported(
                f"broker {node_id} at {peer.node.host}:{peer.node.port} serves {api.name} "
                + (f"in versions {theirs[0]} to {theirs[-1]}" if theirs else "not at all")
                + f", this client {ours[0]} to {ours[-1] if newest is None else newest}"
            )
        return highest

    def feature(self, name: str) -> int:
        """Return the level of a feature that the cluster has agreed on, as far as a connected broker told."""
        return max((peer.features.get(name, 0) for peer in self._peers.values()), default=0)

    async def _ask(
        self, peer: Peer, request: Message, response: type[M], version: int, timeout_s: float
    ) -> M:
        link = peer.link
        assert link is not None
        loop = asyncio.get_running_loop()
        future: asyncio.Future[M] = loop.create_future()

        def answered(outcome: M | Exception) -> None:
            if future.done():
                return
            if isinstance(outcome, Exception):
                future.set_exception(self._blame(peer, outcome))
            else:
                future.set_result(outcome)

        def overdue() -> None:
            if not future.done():
                name = BY_KEY[request.api_key].name if request.api_key is not None else "a request"
                where = f"{peer.node.host}:{peer.node.port}"
                future.set_exception(TimedOut(f"{where} did not answer {name} within {timeout_s:g} s"))
                # Answers come in order, so whatever was asked behind it would be late as well.
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
        patience_ms: int = getattr(answer, "throttle_time_ms", 0)
        if patience_ms > 0:
            peer.muted_until = self._now() + patience_ms / 1000
        return answer

    def _blame(self, peer: Peer, outcome: Exception) -> ClientError:
        where = f"{peer.node.host}:{peer.node.port}"
        if isinstance(outcome, ProtocolError):
            return Malformed(f"{where} sent what cannot be read: {outcome}")
        return Disconnected(f"{where}: {outcome}")

    # Connecting

    async def _connect(self, peer: Peer) -> None:
        try:
            wait_s = peer.not_before - self._now()
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            timeout_s = peer.patience.failed()
            node = peer.node
            try:
                async with asyncio.timeout(timeout_s):
                    peer.link = await self.network.connect(
                        node.host,
                        node.port,
                        lambda: self._make(peer),
                        send_bytes=self._buffer_bytes("send.buffer.bytes"),
                        receive_bytes=self._buffer_bytes("receive.buffer.bytes"),
                    )
            except TimeoutError:
                raise Disconnected(
                    f"{node.host}:{node.port} did not accept within {timeout_s:.3g} s"
                ) from None
            except OSError as error:
                raise Disconnected(f"{node.host}:{node.port}: {error.strerror or error}") from None
            await self._agree(peer)
            peer.backoff.succeeded()
            peer.patience.succeeded()
        except ClientError:
            peer.not_before = self._now() + peer.backoff.failed()
            if peer.link is not None:
                peer.link.close()
                peer.link = None
            raise
        finally:
            peer.connecting = None

    def _buffer_bytes(self, name: str) -> int:
        """The size of a buffer if somebody has chosen one: the system's own grow with the traffic (ADR 0027)."""
        # A plain mapping holds nothing but choices.
        chosen = getattr(self._settings, "given", self._settings)
        size: int = self._settings[name] if name in chosen else SYSTEMS_CHOICE
        return size

    def _make(self, peer: Peer) -> Link:
        return Link(self.client_id, lambda link, reason: self._lost(peer, link))

    def _lost(self, peer: Peer, link: Link) -> None:
        if peer.link is link:
            peer.link = None
            peer.not_before = self._now() + peer.backoff.failed()

    async def _agree(self, peer: Peer) -> None:
        request = ApiVersionsRequest(client_software_name="ottla", client_software_version=__version__)
        version = request.versions[-1]
        answer = await self._ask(peer, request, ApiVersionsResponse, version, self._timeout_s)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            # An older broker answers in version 0, with what it has.
            offered = next((each for each in answer.api_keys if each.api_key == request.api_key), None)
            version = min(version, offered.max_version if offered is not None else 0)
            answer = await self._ask(peer, request, ApiVersionsResponse, version, self._timeout_s)
        if answer.error_code:
            raise refused(answer.error_code, about=f"{peer.node.host}:{peer.node.port}")
        peer.versions = {
            each.api_key: range(each.min_version, each.max_version + 1) for each in answer.api_keys
        }
        peer.features = {each.name: each.max_version_level for each in answer.finalized_features}

    # The end

    def close_idle(self) -> None:
        """Hang up where nothing was asked for `connections.max.idle.ms`."""
        before = self._now() - self._settings["connections.max.idle.ms"] / 1000
        for peer in self._peers.values():
            if peer.link is not None and not peer.link.in_flight and peer.used_at < before:
                self._drop(peer, LinkLost("the connection was idle"))

    def close(self) -> None:
        """Hang up everywhere; open questions end with Disconnected."""
        self._closed = True
        for peer in self._peers.values():
            self._drop(peer, LinkLost("the client was closed"))

    def _drop(self, peer: Peer, reason: Exception) -> None:
        if peer.connecting is not None:
            peer.connecting.cancel()
        if peer.link is not None:
            peer.link.close(reason)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
