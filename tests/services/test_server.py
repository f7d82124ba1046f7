"""The HTTP server over real sockets: HTTP/1.1, HTTP/2 without TLS, TLS, and what hostile clients do to it."""

import asyncio
import ssl
from pathlib import Path

import h2.events
import psutil
import pytest

from ottla.http.limits import Limits
from ottla.http.server import HttpServer
from ottla.http.tls import Tls
from tests.services.http_server import Http2Peer, Peer, is_ended, is_stuck, run, serving, until

CERTIFICATE = str(Path(__file__).with_name("localhost.pem"))
MEGABYTE = 1 << 20


def memory() -> int:
    return psutil.Process().memory_info().rss


def test_requests_of_one_connection_pipelined_and_one_by_one() -> None:
    async def scenario() -> None:
        async with serving() as (server, _):
            peer = await Peer.connect(server)
            assert await peer.ask("/hello?name=a%20b") == (200, b"hello a b")
            assert await peer.ask("/names/a%2Fb") == (200, b"a/b")
            assert (await peer.ask("/nowhere"))[0] == 404
            two = [f"GET /hello?name={number} HTTP/1.1\r\nhost: x\r\n\r\n".encode() for number in (1, 2)]
            await peer.say(b"".join(two))
            assert [await peer.answer() for _ in range(2)] == [(200, b"hello 1"), (200, b"hello 2")]

    run(scenario)


def test_http2_from_the_first_byte() -> None:
    async def scenario() -> None:
        async with serving() as (server, _):
            peer = await Http2Peer.connect(server)
            for stream in (1, 3, 5):
                await peer.send(stream, f"/hello?name={stream}")
            answers = await peer.answers(3)
            assert answers == {stream: (200, f"hello {stream}".encode()) for stream in (1, 3, 5)}

    run(scenario)


def test_http2_can_be_switched_off() -> None:
    async def scenario() -> None:
        async with serving(has_http2=False) as (server, _):
            peer = await Http2Peer.connect(server)
            await peer.send(1, "/hello")
            assert await is_ended(peer.answers(1))
            assert (await (await Peer.connect(server)).ask("/hello"))[0] == 200

    run(scenario)


def test_tls() -> None:
    async def scenario() -> None:
        context = ssl.create_default_context(cafile=CERTIFICATE)
        context.set_alpn_protocols(["http/1.1"])
        async with serving(tls=Tls(CERTIFICATE, CERTIFICATE)) as (server, _):
            assert server.address.startswith("https://")
            peer = await Peer.connect(server, ssl=context, server_hostname="localhost")
            assert await peer.ask("/hello") == (200, b"hello")
            plain = await Peer.connect(server)
            await plain.say(b"GET /hello HTTP/1.1\r\nhost: x\r\n\r\n")
            assert b"200" not in await plain.rest()
        needs = Tls(CERTIFICATE, CERTIFICATE, authorities=CERTIFICATE, needs_client_certificate=True)
        async with serving(tls=needs) as (server, _):
            with pytest.raises((OSError, asyncio.IncompleteReadError)):
                await (await Peer.connect(server, ssl=context, server_hostname="localhost")).ask("/hello")

    run(scenario)


def test_a_port_that_is_taken_is_refused() -> None:
    async def scenario() -> None:
        async with serving() as (server, _):
            with pytest.raises(OSError, match="in use"):
                HttpServer(server.application, "127.0.0.1", server.port).start()
            assert (await (await Peer.connect(server)).ask("/hello"))[0] == 200

    run(scenario)


def test_a_stop_answers_what_is_under_way_and_refuses_the_rest() -> None:
    async def scenario() -> None:
        async with serving() as (server, played):
            idle, under_way = await Peer.connect(server), await Peer.connect(server)
            await idle.ask("/hello")
            asking = asyncio.create_task(under_way.ask("/waits"))
            await until(lambda: played.begun)
            stopping = asyncio.create_task(server.stop())
            assert await idle.rest() == b""
            with pytest.raises(ConnectionError):
                await Peer.connect(server)
            played.go_on.set()
            assert await asking == (200, b"waited")
            began = asyncio.get_running_loop().time()
            await stopping
            assert asyncio.get_running_loop().time() - began < 3

    run(scenario)


def test_a_stop_is_bounded_whatever_clients_do() -> None:
    async def scenario() -> None:
        async with serving(Limits(stop_s=0.3)) as (server, played):
            under_way, half, silent = [await Peer.connect(server) for _ in range(3)]
            asking = asyncio.create_task(under_way.ask("/waits"))
            await half.say(b"GET / HTTP/1.1\r\nho")
            second = await Http2Peer.connect(server)
            await second.send(1, "/waits")
            await until(lambda: played.begun == 2)
            began = asyncio.get_running_loop().time()
            await server.stop()
            assert asyncio.get_running_loop().time() - began < 4
            assert (await asking)[0] == 503
            assert await half.rest() == await silent.rest() == b""

    run(scenario)


@pytest.mark.parametrize(
    "said", [b"", b"PRI * HT", b"GET /hello HTTP/1.1\r\nho", b"GET /hello HTTP/1.1\r\nhost: x\r\n"]
)
def test_who_says_nothing_whole_is_hung_up_on(said: bytes) -> None:
    async def scenario() -> None:
        async with serving(Limits(idle_s=0.5)) as (server, _):
            peer = await Peer.connect(server)
            await peer.say(said)
            assert b"200" not in await peer.rest()
            assert (await (await Peer.connect(server)).ask("/hello"))[0] == 200

    run(scenario)


def test_one_byte_at_a_time_is_not_enough() -> None:
    async def scenario() -> None:
        async with serving(Limits(idle_s=0.5)) as (server, _):
            peer = await Peer.connect(server)
            ended = asyncio.create_task(peer.rest())
            for byte in b"GET /hello HTTP/1.1\r\nx: " + b"y" * 10_000:
                if ended.done():
                    break
                peer.writer.write(bytes([byte]))
                await asyncio.wait([ended], timeout=0.1)
            assert b"200" not in await ended

    run(scenario)


def test_an_idle_connection_is_let_go() -> None:
    async def scenario() -> None:
        async with serving(Limits(idle_s=0.5)) as (server, _):
            peer = await Peer.connect(server)
            await peer.ask("/hello")
            assert await peer.rest() == b""

    run(scenario)


def test_connections_have_a_bound() -> None:
    async def scenario() -> None:
        async with serving(Limits(connections_max=5)) as (server, _):
            kept = [await Peer.connect(server) for _ in range(5)]
            for each in kept:
                assert (await each.ask("/hello"))[0] == 200
            await until(lambda: server.guard.open == 5)
            too_many = [await Peer.connect(server) for _ in range(20)]
            for each in too_many:
                await each.rest()
            assert server.guard.hung_up >= 20
            for each in kept:
                assert (await each.ask("/hello"))[0] == 200
            kept.pop().close()

            async def is_served() -> bool:
                try:
                    return (await (await Peer.connect(server)).ask("/hello"))[0] == 200
                except (OSError, asyncio.IncompleteReadError):
                    return False

            while not await is_served():  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    run(scenario)


@pytest.mark.parametrize(
    ("beginning", "more"),
    [
        (b"GET /hello HTTP/1.1\r\nhost: x\r\n", (b"x: " + b"v" * 1000 + b"\r\n") * 100),
        (b"GET /hello HTTP/1.1\r\nx: ", b"v" * 100_000),
        (b"GET /", b"v" * 100_000),
    ],
    ids=["many", "long", "path"],
)
def test_large_heads_are_refused(beginning: bytes, more: bytes) -> None:
    async def scenario() -> None:
        async with serving() as (server, _):
            before = memory()
            peer = await Peer.connect(server)
            ended = asyncio.create_task(peer.rest())

            async def say_all() -> None:
                await peer.say(beginning)
                for _ in range(100):
                    await peer.say(more)
                await peer.say(b"\r\n\r\n")

            await is_ended(say_all())
            assert b" 200 " not in await ended
            assert memory() - before < 20 * MEGABYTE

    run(scenario)


def test_a_large_body_is_refused_at_once_or_when_it_gets_there() -> None:
    async def scenario() -> None:
        async with serving(Limits(body_bytes_max=1000)) as (server, played):
            peer = await Peer.connect(server)
            assert (await peer.ask("/count", "POST", "content-length: 1000\r\n", b"x" * 1000)) == (
                200,
                b"1000",
            )
            declared = await Peer.connect(server)
            assert (await declared.ask("/count", "POST", "content-length: 1001\r\n"))[0] == 413
            assert played.begun == 1
            chunked = await Peer.connect(server)
            body = b"258\r\n" + b"x" * 600 + b"\r\n"
            assert (await chunked.ask("/count", "POST", "transfer-encoding: chunked\r\n", body + body))[
                0
            ] == 413

    run(scenario)


@pytest.mark.parametrize("http2", [False, True])
def test_a_body_that_nobody_reads_stays_with_the_client(http2: bool) -> None:
    async def scenario() -> None:
        async with serving(Limits(body_bytes_max=1 << 30)) as (server, _):
            before, pushed = memory(), 0

            async def push() -> None:
                nonlocal pushed
                peer = await Peer.connect(server)
                await peer.say(b"POST /slow-reader HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
                while True:
                    await peer.say(b"10000\r\n" + bytes(65_536) + b"\r\n")
                    pushed += 65_536

            async def push_http2() -> None:
                nonlocal pushed
                peer = await Http2Peer.connect(server)
                await peer.send(1, "/slow-reader", method="POST", ends=False)
                while True:
                    size = min(peer.http.local_flow_control_window(1), 16_384)
                    if size:
                        peer.http.send_data(1, bytes(size))
                        await peer.flush()
                        pushed += size
                    else:
                        await peer.events()

            assert await is_stuck(push_http2() if http2 else push())
            assert 0 < pushed < 16 * MEGABYTE
            assert memory() - before < 30 * MEGABYTE

    run(scenario)


@pytest.mark.parametrize("http2", [False, True])
def test_an_answer_that_nobody_takes_is_not_made(http2: bool) -> None:
    """A client that keeps its window closed is given no more than the server may hold for it, and is then left."""

    async def scenario() -> None:
        async with serving(Limits(idle_s=1.0)) as (server, played):
            before = memory()
            if http2:
                second = await Http2Peer.connect(server)
                await second.send(1, "/flood")
            else:
                peer = await Peer.connect(server)
                await peer.say(b"GET /flood HTTP/1.1\r\nhost: x\r\n\r\n")
                peer.writer.transport.pause_reading()
            await until(lambda: played.sent)
            await until(lambda: played.ended)
            assert played.sent < 32 * MEGABYTE
            assert memory() - before < 60 * MEGABYTE

    run(scenario)


@pytest.mark.parametrize("http2", [False, True])
def test_a_stream_ends_when_its_client_goes(http2: bool) -> None:
    async def scenario() -> None:
        async with serving() as (server, played):
            if http2:
                second = await Http2Peer.connect(server)
                await second.send(1, "/drip")
                await until(lambda: played.begun)
                second.http.reset_stream(1)
                await second.flush()
            else:
                peer = await Peer.connect(server)
                await peer.say(b"GET /drip HTTP/1.1\r\nhost: x\r\n\r\n")
                await until(lambda: played.begun)
                peer.close()
            await until(lambda: played.ended)

    run(scenario)


@pytest.mark.parametrize("http2", [False, True])
def test_an_answer_that_breaks_off_does_not_look_whole(http2: bool) -> None:
    async def scenario() -> None:
        async with serving() as (server, _):
            if http2:
                second = await Http2Peer.connect(server)
                await second.send(1, "/breaks-off")
                kinds: set[type] = set()
                while not kinds & {h2.events.StreamReset, h2.events.ConnectionTerminated}:
                    kinds |= {type(each) for each in await second.events()}
                    assert h2.events.StreamEnded not in kinds
            else:
                peer = await Peer.connect(server)
                await peer.say(b"GET /breaks-off HTTP/1.1\r\nhost: x\r\n\r\n")
                answer = await peer.rest()
                assert b"first" in answer and not answer.endswith(b"0\r\n\r\n")

    run(scenario)


def test_streams_that_are_opened_and_reset_without_end() -> None:
    async def scenario() -> None:
        async with serving() as (server, _):
            before = memory()
            peer = await Http2Peer.connect(server)

            async def open_and_reset() -> None:
                for number in range(20_000):
                    await peer.send(2 * number + 1, "/waits")
                    peer.http.reset_stream(2 * number + 1)
                    await peer.flush()
                while True:
                    await peer.events()

            assert await is_ended(open_and_reset())
            assert memory() - before < 60 * MEGABYTE
            assert (await (await Peer.connect(server)).ask("/hello"))[0] == 200

    run(scenario)


def test_http2_heads_have_a_limit() -> None:
    async def scenario() -> None:
        async with serving() as (server, _):
            peer = await Http2Peer.connect(server)
            status = 0
            try:
                await peer.send(1, "/hello", *((f"x-{number}", "v" * 1000) for number in range(500)))
                while not status:
                    for event in await peer.events():
                        if isinstance(event, h2.events.ResponseReceived):
                            status = int(dict(event.headers)[b":status"])
                        elif isinstance(event, h2.events.StreamReset | h2.events.ConnectionTerminated):
                            status = 431
            except (OSError, EOFError):
                status = 431
            assert status == 431
            assert (await (await Peer.connect(server)).ask("/hello"))[0] == 200

    run(scenario)


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 200,
        b"GET /\x00 HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /hello HTTP/9.9\r\nhost: x\r\n\r\n",
        b"POST /count HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ncontent-length: 5\r\n\r\nabcde",
        b"POST /count HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"POST /count HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"POST /count HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        b"GET /names/%zz%ff HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /names/\xff\xfe HTTP/1.1\r\nhost: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 100,
    ],
)
def test_nonsense_is_refused_and_others_are_served(nonsense: bytes) -> None:
    async def scenario() -> None:
        async with serving(Limits(idle_s=2.0)) as (server, _):
            peer = await Peer.connect(server)
            await peer.say(nonsense)
            answer = await peer.rest()
            assert b" 200 " not in answer and b" 500 " not in answer, answer
            assert (await (await Peer.connect(server)).ask("/hello"))[0] == 200

    run(scenario)
