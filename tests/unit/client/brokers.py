"""Brokers in memory: what a client writes is decoded and handed to functions, and their answers come back."""

import asyncio
import struct

from ottla.wire.apis import BY_KEY
from ottla.wire.header import read_request_header
from ottla.wire.messages.api_versions import ApiVersionsResponse
from ottla.wire.messages.metadata import MetadataResponse

SETTINGS = {
    "bootstrap.servers": ("one:9092", "two:9092"),
    "client.id": "",
    "request.timeout.ms": 200,
    "reconnect.backoff.ms": 1,
    "reconnect.backoff.max.ms": 4,
    "retry.backoff.ms": 1,
    "retry.backoff.max.ms": 4,
    "socket.connection.setup.timeout.ms": 1_000,
    "socket.connection.setup.timeout.max.ms": 4_000,
    "send.buffer.bytes": 131_072,
    "receive.buffer.bytes": -1,
    "client.dns.lookup": "use_all_dns_ips",
    "metadata.recovery.strategy": "rebootstrap",
    "metadata.recovery.rebootstrap.trigger.ms": 300_000,
    "connections.max.idle.ms": 540_000,
    "metadata.max.age.ms": 300_000,
    "default.api.timeout.ms": 500,
}
SILENCE = object()


class Transport:
    """The far end of a link."""

    def __init__(self, network, address, protocol):
        self.network, self.address, self.protocol = network, address, protocol
        self.closed = False
        self.buffered = b""

    def writelines(self, parts):
        self.buffered += b"".join(map(bytes, parts))
        while len(self.buffered) >= 4:
            [size] = struct.unpack_from(">i", self.buffered)
            if len(self.buffered) < size + 4:
                return
            frame, self.buffered = self.buffered[4 : size + 4], self.buffered[size + 4 :]
            self._serve(frame)

    def _serve(self, frame):
        key, version, number, _, pos = read_request_header(frame, 0, len(frame))
        api = BY_KEY[key]
        request = api.request.decode(frame[pos:], version)
        self.network.asked.append((self.address, api.name, version, request))
        answer = self.network.answer(self.address, api.name, request)
        if answer is SILENCE:
            return
        tagged = api.response_header_version(version) > 0
        body = struct.pack(">i", number) + (b"\0" if tagged else b"") + answer.encode(version)
        asyncio.get_running_loop().call_soon(self._feed, struct.pack(">i", len(body)) + body)

    def _feed(self, data):
        while data and not self.closed:
            room = self.protocol.get_buffer(-1)
            taken = min(len(room), len(data))
            room[:taken] = data[:taken]
            self.protocol.buffer_updated(taken)
            data = data[taken:]

    def abort(self):
        if not self.closed:
            self.closed = True
            self.network.open.discard(self)
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)


class Brokers:
    """A network of brokers by address. `handlers` maps (address, api) or an api to a function of the request."""

    def __init__(self):
        self.handlers = {}
        self.down = set()
        self.deaf = set()
        self.asked = []
        self.open = set()
        self.connects = 0
        self.limits = {}
        self.metadata = MetadataResponse(cluster_id="c", controller_id=1)

    async def canonical(self, host):
        return [f"{host}.example", f"{host}2.example"]

    async def connect(self, host, port, protocol, *, send_bytes, receive_bytes):
        self.connects += 1
        self.buffers = send_bytes, receive_bytes
        address = f"{host}:{port}"
        await asyncio.sleep(3_600 if address in self.deaf else 0)
        if address in self.down:
            raise ConnectionRefusedError(111, "Connection refused")
        made = protocol()
        transport = Transport(self, address, made)
        self.open.add(transport)
        made.connection_made(transport)
        return made

    def answer(self, address, name, request):
        handler = self.handlers.get((address, name)) or self.handlers.get(name)
        if handler is not None:
            return handler(request)
        if name == "ApiVersions":
            limits = self.limits.get(address, {})
            keys = [
                ApiVersionsResponse.ApiVersion(
                    api_key=api.key,
                    min_version=api.versions[0],
                    max_version=limits.get(api.name, api.stable_versions[-1]),
                )
                for api in BY_KEY.values()
                if limits.get(api.name, 0) >= 0
            ]
            return ApiVersionsResponse(api_keys=keys)
        assert name == "Metadata", name
        return self.metadata

    def hang_up(self):
        for transport in tuple(self.open):
            transport.abort()

    def names(self):
        return [name for _, name, _, _ in self.asked if name != "ApiVersions"]


def broker(number, host):
    return MetadataResponse.MetadataResponseBroker(node_id=number, host=host, port=9092)


def topic(name, *leaders, id=b"i" * 16, error=0):
    kind = MetadataResponse.MetadataResponseTopic
    partitions = [
        kind.MetadataResponsePartition(partition_index=n, leader_id=node, leader_epoch=epoch)
        for n, (node, epoch) in enumerate(leaders)
    ]
    return kind(name=name, topic_id=id, partitions=partitions, error_code=error)
