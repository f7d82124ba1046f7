"""The server is spoken to over a real socket on this machine, since that is all there is to it."""

import asyncio
import socket
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
                assert answer[1][b"transfer-encoding"] == b"chunked"
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


def test_for_one_that_comes_the_one_goes_that_was_served_longest_ago(monkeypatch):
    monkeypatch.setattr(module, "_PEERS_MAX", 2)

    async def scenario():
        async with serving() as server:
            kept = [await Client.connect(server) for _ in range(2)]
            for client in (kept[1], kept[0]):
                assert (await client.ask("GET", "/healthz"))[0] == 200
            third = await Client.connect(server)
            assert (await third.ask("GET", "/metrics"))[0] == 200
            assert await kept[1].raw(b"") == b""
            assert (await kept[0].ask("GET", "/healthz"))[0] == 200
            assert len(server.peers) == 2

    run(scenario)


def test_where_all_take_their_page_the_next_one_is_turned_away(monkeypatch):
    monkeypatch.setattr(module, "_PEERS_MAX", 2)

    def endless():
        while True:
            yield b""

    async def scenario():
        async with serving(endless) as server:
            kept = [await Client.connect(server) for _ in range(2)]
            for client in kept:
                client.writer.write(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
            await until(lambda: sum(peer.is_taking for peer in server.peers) == 2)
            third = await Client.connect(server)
            assert (await third.raw(b"")).startswith(b"HTTP/1.1 503")

    run(scenario)


async def idle_readers(server, count):
    """Peers that ask for the page and take nothing of it."""
    made = []
    for _ in range(count):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        client.setblocking(False)
        await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", server.port))
        client.sendall(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n" * 3)
        made.append(client)
    return made


def test_those_who_take_nothing_do_not_take_the_page_away_from_others_nor_fill_memory():
    made = []

    def page():
        for _ in range(500):
            made.append(1)
            yield bytes(20_000)

    async def scenario():
        async with serving(page) as server:
            silent = await idle_readers(server, module._PEERS_MAX)
            await until(lambda: sum(not peer._writable for peer in server.peers) == module._PEERS_MAX)
            before = len(made)
            for _ in range(1000):
                await asyncio.sleep(0)
            assert len(made) == before, "no piece is made before those before it are taken"
            assert sum(peer._transport.get_write_buffer_size() for peer in server.peers) < 64 * 100_000
            client = await Client.connect(server)
            status, _, body = await client.ask("GET", "/metrics")
            assert status == 200 and len(body) == 10_000_000
            for each in silent:
                each.close()

    run(scenario)


def test_a_page_that_is_not_taken_in_time_is_given_up(monkeypatch):
    monkeypatch.setattr(module, "_PAGE_S", 0.05)

    async def scenario():
        async with serving(lambda: iter([bytes(20_000)] * 500)) as server:
            [silent] = await idle_readers(server, 1)
            await until(lambda: server.peers)
            [peer] = server.peers
            await until(lambda: not server.peers)
            assert peer._transport.get_write_buffer_size() == 0
            silent.close()

    run(scenario)


def test_what_is_not_taken_when_we_hang_up_is_not_kept(monkeypatch):
    monkeypatch.setattr(module, "_FAREWELL_S", 0.05)

    async def scenario():
        async with serving(lambda: iter([bytes(20_000)] * 500)) as server:
            [silent] = await idle_readers(server, 1)
            await until(lambda: server.peers and not next(iter(server.peers))._writable)
            next(iter(server.peers)).hang_up()
            await until(lambda: not server.peers)
            silent.close()

    run(scenario)


def test_a_page_that_breaks_is_not_ended_as_if_it_were_whole():
    def page():
        yield b"one 1\n"
        raise ValueError("broken")

    async def scenario():
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        async with serving(page) as server:
            client = await Client.connect(server)
            with pytest.raises((h11.RemoteProtocolError, ConnectionError)):
                await client.ask("GET", "/metrics")

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
