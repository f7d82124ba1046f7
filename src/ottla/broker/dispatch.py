"""From a frame to a handler and back: header, table, decode, handle, encode.

This is the broker's main road; every request pays for each line here. A frame that cannot be understood closes its
connection, as Kafka does, except ApiVersions, whose callers negotiate by trying (KIP-511).
"""

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ottla.broker.api import Api, Pending
from ottla.broker.complaint import Complaints, place_of
from ottla.broker.long_requests import LongRequests
from ottla.channel.connection import Connection
from ottla.wire.errors import ProtocolError
from ottla.wire.message import Message
from ottla.wire.tags import BUDGET, read_unknown

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_HEAD = struct.Struct(">hhih")  # api key, version, correlation id, length of the client id
_REPLY_V0 = struct.Struct(">ii")  # size, correlation id
_REPLY_V1 = struct.Struct(">iiB")  # and an empty tag section
_API_VERSIONS = 18
_ENCODED_COST = 15  # of a byte that is encoded, beside one of records that is only sent
BUCKETS = 28  # up to two minutes
_NEVER = 1 << 31
_CARRIES_RECORDS = frozenset({1, 78})  # Fetch, ShareFetch: their replies are written without copying records
# Answers of a few bytes, which leave even while there is no room for others: Produce, OffsetCommit, FindCoordinator,
# Heartbeat, LeaveGroup, ApiVersions, InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, WriteTxnMarkers,
# TxnOffsetCommit, AlterPartition, BrokerRegistration, BrokerHeartbeat, AllocateProducerIds, the heartbeats of groups,
# ShareAcknowledge.
_SMALL = frozenset({0, 8, 10, 12, 13, 18, 22, 24, 25, 26, 27, 28, 56, 62, 63, 67, 68, 76, 79, 88})
# Answers that a client needs before all others, and that are seldom large, for which a part of the room is kept free:
# ListOffsets, Metadata, OffsetFetch, JoinGroup, SyncGroup, OffsetForLeaderEpoch, DescribeCluster.
_MODEST = frozenset({2, 3, 9, 11, 14, 23, 60})


class Route:
    """One API at one version, with its compiled codecs and its counters."""

    __slots__ = (
        "_encode",
        "_encode_parts",
        "_head",
        "api",
        "buckets",
        "carries_records",
        "count",
        "decode",
        "express",
        "flexible",
        "handle",
        "is_modest",
        "is_small",
        "long",
        "long_bytes",
        "seconds",
        "version",
    )

    def __init__(self, api: Api, version: int) -> None:
        self.api = api
        self.version = version
        self.handle = api.handle
        self.express = api.express
        self.long = api.long
        # Beyond it a request is served in steps; no frame is as long as what stands for "never".
        self.long_bytes = _NEVER if api.long is None else api.long_bytes
        self.is_small = api.key in _SMALL
        self.is_modest = api.key in _MODEST
        self.decode: Callable[[bytearray, int, int], tuple[Any, int]] = api.request.decoder(version)
        self.flexible = api.facts.request_header_version(version) >= 2
        self._head = _REPLY_V1 if api.facts.response_header_version(version) >= 1 else _REPLY_V0
        self._encode = api.response.encoder(version)
        self.carries_records = api.key in _CARRIES_RECORDS
        self._encode_parts = api.response.parts_encoder(version) if self.carries_records else None
        self.count = 0
        # Bucket n counts requests of less than 2^n microseconds.
        self.buckets = [0] * BUCKETS
        self.seconds = 0.0

    def took(self, seconds: float) -> None:
        """Count a request that was answered after so long."""
        self.count += 1
        self.seconds += seconds
        self.buckets[min(int(seconds * 1e6).bit_length(), BUCKETS - 1)] += 1

    def parts(self, message: Message, correlation_id: int) -> list[Any]:
        """Encode a reply as the buffers to write."""
        head = self._head
        out = bytearray(head.size)
        parts: list[Any] = [out]
        if self._encode_parts is None:
            self._encode(message, out)
            size = len(out)
        else:
            self._encode_parts(message, parts)
            size = len(out) if len(parts) == 1 else sum(map(len, parts))
        if head is _REPLY_V0:
            head.pack_into(out, 0, size - 4, correlation_id)
        else:
            head.pack_into(out, 0, size - 4, correlation_id, 0)
        return parts

    def head(self, size: int, correlation_id: int) -> bytes:
        """What comes before a reply of so many bytes."""
        head = self._head
        extra = () if head is _REPLY_V0 else (0,)
        return head.pack(head.size - 4 + size, correlation_id, *extra)


class Dispatcher:
    """The API table, compiled on first use, and the function that serves a frame."""

    def __init__(self, apis: tuple[Api, ...], broker: "Broker", report: Callable[[str], None]) -> None:
        self.apis = {api.key: api for api in apis}
        self.routes: dict[int, Route] = {}
        self._broker = broker
        self.long = LongRequests(self, broker)
        self._connections = broker.connections
        self.now = broker.clock.monotonic
        self._report = Complaints(report, self.now)
        # Faults of our own have a limit of their own: a flood of bad frames must not hide them.
        self._report_failure = Complaints(report, self.now)

    def serve(self, connection: Connection, buffer: bytearray, position: int, end: int) -> None:
        """Serve one frame: the bytes of `buffer` from `position` to `end`."""
        began = self.now()
        try:
            key, version, correlation_id, length = _HEAD.unpack_from(buffer, position)
            position += 10
            if position > end:  # the buffer goes on, with what somebody else has sent
                raise ProtocolError("the frame is shorter than a header")
            route = self.routes.get(key << 16 | version)
            if route is None:
                route = self._route(key, version)
                if route is None:
                    self._unsupported(connection, key, version, correlation_id)
                    return
            if length > 0:
                if position + length > end:
                    raise ProtocolError("the client id runs past the end of the request")
                client_id = buffer[position : position + length]
                if client_id != connection.session.client_id:
                    connection.session.client_id = client_id
                position += length
            if route.flexible:
                if buffer[position]:
                    _, position, _ = read_unknown(buffer, position, end, BUDGET)
                else:
                    position += 1
                if position > end:
                    raise ProtocolError("the frame ends within its header")
        except (ProtocolError, struct.error, IndexError) as error:
            self.malformed(connection, error)
            return
        try:
            reply: Message | Pending | list[Any] | None = None
            if route.express is not None:
                reply = route.express(buffer, position, end, correlation_id, route.version, self._broker)
            if reply is None:
                if end - position > route.long_bytes:
                    self.long.add(buffer[position:end], route, connection, correlation_id, began)
                    return
                try:
                    request, _ = route.decode(buffer, position, end)
                except ProtocolError as error:
                    self.malformed(connection, error)
                    return
                answers = self._connections.answers
                if answers.is_full and not route.is_small:
                    if not route.is_modest or answers.total >= answers.modest_max:
                        self._put_off(request, route, connection, correlation_id, began)
                        return
                reply = route.handle(request, route.version, connection, self._broker)
            connections = self._connections
            if connections.due and connections.at_end:
                connections.settle_due()
            kind = type(reply)
            if kind is Pending:
                connections.spend(self.now() - began)
                reply.attach(connection, self, route, correlation_id, began)  # type: ignore[union-attr]
                return
            if kind is list:
                connection.reply(reply)  # type: ignore[arg-type]
            elif reply is not None:
                connection.reply(parts := route.parts(reply, correlation_id))  # type: ignore[arg-type]  # a Message
                if not route.carries_records:
                    connections.turn_cost += _ENCODED_COST * len(parts[0])
        except Exception as error:  # noqa: BLE001  # the fault is ours, or of a kind Kafka has no code for
            self.failed(connection, route, error)
            return
        seconds = self.now() - began
        connections.spend(seconds)
        route.took(seconds)

    def _put_off(
        self, request: Any, route: Route, connection: Connection, correlation_id: int, began: float
    ) -> None:
        """Serve a request once there is room for its answer (law C8 of a connection); until then none behind it."""
        pending = Pending()
        pending.attach(connection, self, route, correlation_id, began)

        def handle() -> None:
            started = self.now()
            try:
                reply = route.handle(request, route.version, connection, self._broker)
            except Exception as error:  # noqa: BLE001
                self.failed(connection, route, error)
                return
            finally:
                self._connections.spend_outside(connection, self.now() - started)
            if isinstance(reply, Pending):
                # It takes the place that was kept for it: what an answer holds is counted under its own name.
                if connection.owed:
                    assert connection.owed.pop() is pending, "nothing is served behind a request that was put off"
                reply.attach(connection, self, route, correlation_id, began)
            elif reply is not None:
                pending.resolve(reply)
            else:
                pending.send([])

        connection.wait_for_room(handle)

    def malformed(self, connection: Connection, error: Exception) -> None:
        """Close a connection that has sent what is no request."""
        self._report(f"closing {connection.peer}: malformed request: {error}")
        connection.close()

    def failed(self, connection: Connection, route: Route, error: Exception) -> None:
        """Give up on a request: its client loses the connection, and nobody else notices."""
        self._report_failure(
            f"closing {connection.peer}: {route.api.name} v{route.version} failed: {error!r:.500}{place_of(error)}"
        )
        self._broker.failed(error.with_traceback(None))  # whose frames would keep the request
        connection.close()

    def _route(self, key: int, version: int) -> Route | None:
        api = self.apis.get(key)
        if api is None or version not in api.versions:
            return None
        route = self.routes[key << 16 | version] = Route(api, version)
        return route

    def _unsupported(self, connection: Connection, key: int, version: int, correlation_id: int) -> None:
        if key == _API_VERSIONS:
            route = self._route(key, 0)
            assert route is not None
            connection.reply(route.parts(self._broker.api_versions.unsupported, correlation_id))
            return
        self._report(f"closing {connection.peer}: API {key} version {version} is not served")
        connection.close()
