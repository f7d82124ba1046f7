"""The server is spoken to over a real socket on this machine, since that is all there is to it."""

import asyncio
from contextlib import asynccontextmanager

import h11
import pytest

from ottla.http import metrics_server as module
from ottla.http.metrics_server import MetricsServer
from ottla.world.network import RealNetwork

PAGE = b"# TYPE one gauge\none 1\n"


@asynccontextmanager
async def serving(page=lambda: iter([PAGE[:10], PAGE[10:]])):
    server = MetricsServer(page, asyncio.get_running_loop())
    await server.start(RealNetwork(), "127.0.0.1", 0)
    try:
        yield server
    finally:
        await server.stop()


class Client:
    def __init__(self, reader, writer):
        self._reader = reader
        self.writer = writer
        self._http = h11.Connection(h11.CLIENT)

    @classmethod
    async def connect(cls, server):
        return cls(*await asyncio.open_connection("127.0.0.1", server.port))

    async def ask(self, method, target, body=b""):
        headers = [("host", "x"), ("content-length", str(len(body)))]
        self.writer.write(self._http.send(h11.Request(method=method, target=target, headers=headers)))
        self.writer.write(self._http.send(h11.Data(data=body)) + self._http.send(h11.EndOfMessage()))
        status, answered, content = 0, {}, b""
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                self._http.receive_data(await asyncio.wait_for(self._reader.read(65536), 5))
            elif isinstance(event, h11.Response):
                status, answered = event.status_code, dict(event.headers)
            elif isinstance(event, h11.Data):
                content += event.data
            else:
                self._http.start_next_cycle()
                return status, answered, content

    async def raw(self, data):
        self.writer.write(data)
        return await asyncio.wait_for(self._reader.read(), 5)


async def until(condition):
    while not condition():  # noqa: ASYNC110  # run() sets the deadline
        await asyncio.sleep(0)


def run(scenario):
    asyncio.run(asyncio.wait_for(scenario(), 20))


def test_the_page_is_served_again_and_again_on_one_connection():
    async def scenario():
        pages = iter(range(100))
        async with serving(lambda: iter([b"page ", b"%d\n" % next(pages)])) as server:
            client = await Client.connect(server)
            for number in range(3):
                status, headers, body = await client.ask("GET", "/metrics")
                assert (status, body) == (200, b"page %d\n" % number)
                assert headers[b"content-type"] == b"text/plain; version=0.0.4; charset=utf-8"

    run(scenario)


@pytest.mark.parametrize(
    ("method", "target", "status", "body"),
    [
        ("GET", "/metrics?name=up", 200, PAGE),
        ("HEAD", "/metrics", 200, b""),
        ("GET", "/health", 200, b"{\"status\":\"live\"}"),
        ("GET", "/healthz", 200, b"{\"status\":\"live\"}"),
        ("GET", "/ready", 200, b"{\"ready\": true, \"reasons\": {}}"),
        ("POST", "/metrics", 405, b"only GET and HEAD\n"),
        ("GET", "/", 404, b"there is /metrics, /health and /ready\n"),
        ("DELETE", "/elsewhere", 404, b"there is /metrics, /health and /ready\n"),
    ],
)
def test_what_there_is_and_what_there_is_not(method, target, status, body):
    async def scenario():
        async with serving() as server:
            client = await Client.connect(server)
            answer = await client.ask(method, target, b"ignored" if method == "POST" else b"")
            assert (answer[0], answer[2]) == (status, body)
            if method == "HEAD":
                assert answer[1][b"content-length"] == str(len(PAGE)).encode()
            if status == 405:
                assert answer[1][b"allow"] == b"GET, HEAD"

    run(scenario)


def test_a_client_that_wants_to_close_is_hung_up_on():
    async def scenario():
        async with serving() as server:
            client = await Client.connect(server)
            answer = await client.raw(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"live\"}")

    run(scenario)


def test_pipelined_requests_are_answered_in_order():
    async def scenario():
        async with serving() as server:
            client = await Client.connect(server)
            one = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"
            last = b"GET /nothing HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
            answer = await client.raw(one * 3 + last)
            assert [part[:4] for part in answer.split(b"HTTP/1.1 ")[1:]] == [b"200 "] * 3 + [b"404 "]

    run(scenario)


@pytest.mark.parametrize(
    "nonsense",
    [b"\x00\x00\x00\x10\x00\x12\x00\x03garbage\r\n\r\n", b"GET /" + b"x" * 20_000, b"GET / HTTP/1.1\r\n\r\n"],
    ids=["bytes of another protocol", "a head without end", "no host"],
)
def test_nonsense_is_refused_and_the_connection_closed(nonsense):
    async def scenario():
        async with serving() as server:
            client = await Client.connect(server)
            answer = await client.raw(nonsense)
            assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 431"))
            other = await Client.connect(server)
            assert (await other.ask("GET", "/healthz"))[0] == 200

    run(scenario)


def test_connections_over_the_limit_are_turned_away(monkeypatch):
    monkeypatch.setattr(module, "_PEERS_MAX", 2)

    async def scenario():
        async with serving() as server:
            kept = [await Client.connect(server) for _ in range(2)]
            assert [(await client.ask("GET", "/healthz"))[0] for client in kept] == [200, 200]
            third = await Client.connect(server)
            assert (await third.raw(b"")).startswith(b"HTTP/1.1 503")
            kept[0].writer.close()
            await kept[0].writer.wait_closed()
            await until(lambda: len(server.peers) == 1)
            again = await Client.connect(server)
            assert (await again.ask("GET", "/healthz"))[0] == 200

    run(scenario)


def test_a_peer_that_says_nothing_is_let_go(monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE_S", 0.05)

    async def scenario():
        async with serving() as server:
            client = await Client.connect(server)
            assert await client.raw(b"GET /metrics HTTP/1.1\r\nhost: ") == b""

    run(scenario)


def test_a_peer_that_does_not_read_gets_no_further_page():
    pages = []

    def page():
        pages.append(1)
        return iter([bytes(8 << 20)])

    async def scenario():
        async with serving(page) as server:
            client = await Client.connect(server)
            client.writer.write(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n" * 50)
            await until(lambda: pages)
            for _ in range(100):
                await asyncio.sleep(0)
            assert len(pages) < 5

    run(scenario)


def test_stopping_hangs_up_on_everybody():
    async def scenario():
        async with serving() as server:
            client = await Client.connect(server)
            await client.ask("GET", "/healthz")
            await server.stop()
            assert await client.raw(b"") == b""

    run(scenario)
