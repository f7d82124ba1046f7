"""An application from the head of a request to the last byte of its answer, called without a server."""

import asyncio
import json
import logging
from typing import Any

import pytest
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from ottla.http.authentication import Principal
from ottla.http.error import ConfluentErrors, HttpError
from ottla.http.limits import Limits
from ottla.http.readiness import ReadinessCheck
from ottla.http.route import Route
from tests.unit.http.asgi import Call, application, ask

V1 = "application/vnd.schemaregistry.v1+json"
JSON = (V1, "application/json")


async def subject(request: Any, service: Any) -> Response:
    return JSONResponse({"subject": request.parameters["subject"], "as": request.media_type})


async def echo(request: Any, service: Any) -> Response:
    return JSONResponse(await request.read_json())


async def count(request: Any, service: Any) -> Response:
    return JSONResponse(sum([len(piece) async for piece in request.stream()]))


async def missing(request: Any, service: Any) -> Response:
    raise HttpError(404, "Subject 'a' not found.", code=40401)


async def broken(request: Any, service: Any) -> Response:
    raise RuntimeError("secret of /opt/ottla")


async def breaks_off(request: Any, service: Any) -> Response:
    async def pieces():
        yield b"one"
        raise RuntimeError("secret")

    return StreamingResponse(pieces())


async def endless(request: Any, service: Any) -> Response:
    await asyncio.Event().wait()
    raise AssertionError


async def whoami(request: Any, service: Any) -> Response:
    return PlainTextResponse(str(request.principal))


ROUTES = (
    Route("GET", "/subjects/{subject}/versions", subject, produces=JSON),
    Route("POST", "/echo", echo, consumes=JSON, produces=JSON),
    Route("POST", "/large", count, body_bytes_max=100),
    Route("POST", "/stream", count, is_stream=True),
    Route("GET", "/missing", missing),
    Route("GET", "/broken", broken),
    Route("GET", "/breaks-off", breaks_off),
    Route("GET", "/endless", endless, timeout_s=0.05),
    Route("GET", "/waits", endless),
    Route("GET", "/whoami", whoami),
)


def test_a_parameter_may_hold_a_slash() -> None:
    answer = ask(application(ROUTES), "GET", "/subjects/a%2Fb%C3%A9/versions/")
    assert (answer.status, answer.json["subject"]) == (200, "a/bé")


@pytest.mark.parametrize(
    ("method", "target", "headers", "status"),
    [
        ("GET", "/nowhere", {}, 404),
        ("GET", "/subjects//versions", {}, 404),
        ("GET", "/subjects/%ff/versions", {}, 400),
        ("DELETE", "/echo", {}, 405),
        ("BREW", "/echo", {}, 405),
        ("POST", "/echo", {"content-type": "text/xml", "content-length": "1"}, 415),
        ("POST", "/echo", {"content-type": "text/xml", "transfer-encoding": "chunked"}, 415),
        ("GET", "/subjects/a/versions", {"accept": "text/html"}, 406),
        ("GET", "/subjects/a/versions", {"accept": f"{V1};q=0, application/json;q=0"}, 406),
        ("POST", "/echo", {"content-length": "-1"}, 400),
        ("POST", "/echo", {"content-length": "99999999999"}, 413),
        ("GET", "/broken", {}, 500),
    ],
)
def test_what_is_refused_is_refused_in_the_form_of_the_api(
    method: str, target: str, headers: dict[str, str], status: int
) -> None:
    answer = ask(application(ROUTES, errors=ConfluentErrors(V1)), method, target, headers=headers)
    assert answer.status == status
    assert answer.headers["content-type"] == V1
    assert answer.json.keys() == {"error_code", "message"} and answer.json["error_code"] == status
    if status == 405:
        assert answer.headers["allow"] == "OPTIONS, POST"


def test_an_api_has_codes_of_its_own() -> None:
    answer = ask(application(ROUTES), "GET", "/missing")
    assert answer.status == 404
    assert answer.json == {"error_code": 40401, "message": "Subject 'a' not found."}


@pytest.mark.parametrize(
    ("accept", "kind"),
    [("", V1), ("*/*", V1), ("application/json", "application/json"), ("application/*", V1), ("rubbish", V1),
     ("application/json;q=0.9, application/vnd.schemaregistry.v1+json;q=0.1", "application/json")],
)  # fmt: skip
def test_the_kind_that_the_client_likes_best(accept: str, kind: str) -> None:
    answer = ask(application(ROUTES), "GET", "/subjects/a/versions", headers={"accept": accept})
    assert answer.json["as"] == kind


def test_head_is_get_without_a_body() -> None:
    get, head = (ask(application(ROUTES), method, "/subjects/a/versions") for method in ("GET", "HEAD"))
    assert head.body == b"" and head.is_whole
    assert head.headers["content-length"] == get.headers["content-length"] == str(len(get.body))
    assert ask(application(ROUTES), "HEAD", "/breaks-off").is_whole
    assert ask(application(ROUTES), "HEAD", "/nowhere").status == 404
    assert ask(application(ROUTES), "HEAD", "/echo").status == 405


def test_options_says_what_there_is() -> None:
    answer = ask(application(ROUTES), "OPTIONS", "/subjects/a/versions")
    assert (answer.status, answer.headers["allow"]) == (204, "GET, HEAD, OPTIONS")
    assert ask(application(ROUTES), "OPTIONS", "/nowhere").status == 404


@pytest.mark.parametrize(
    "body", [b"{", b"\xff\xfe", b"[" * 100_000, b"NaN", b"9" * 10_000, b"", b'"\xed\xa0\x80"']
)
def test_what_is_no_json_is_refused(body: bytes) -> None:
    assert ask(application(ROUTES), "POST", "/echo", pieces=(body,)).status == 400


def test_json_comes_through() -> None:
    given = {"schema": '"string"', "größe": [1, None]}
    answer = ask(
        application(ROUTES),
        "POST",
        "/echo",
        headers={"content-type": f"{V1}; charset=utf-8"},
        pieces=(json.dumps(given).encode()[:10], json.dumps(given).encode()[10:]),
    )
    assert answer.json == given


def test_a_body_without_length_is_read_up_to_the_limit() -> None:
    call = Call("POST", "/large", headers={"transfer-encoding": "chunked"}, pieces=(b"x" * 60,) * 1000)
    answer = asyncio.run(call.of(application(ROUTES)))
    assert answer.status == 413 and "100 bytes" in answer.json["message"]
    assert answer.headers["connection"] == "close"
    assert call.taken == 120
    assert ask(application(ROUTES), "POST", "/large", pieces=(b"x" * 50, b"x" * 50)).body == b"100"


def test_a_stream_has_no_limit() -> None:
    app = application(ROUTES, limits=Limits(body_bytes_max=10, held_bytes_max=10))
    assert ask(app, "POST", "/stream", pieces=(b"x" * 1000,) * 10).body == b"10000"


def test_bodies_together_have_a_budget_and_give_it_back() -> None:
    app = application(ROUTES, limits=Limits(held_bytes_max=100))
    for _ in range(5):
        assert ask(app, "POST", "/large", pieces=(b"x" * 80,)).status == 200

    async def two() -> tuple[int, int]:
        slow = Call("POST", "/large", pieces=(b"x" * 80,), hangs=True)
        first = asyncio.create_task(slow.of(app))
        await asyncio.sleep(0)
        while not slow.taken:  # noqa: ASYNC110  # the deadline is below
            await asyncio.sleep(0)
        second = await Call("POST", "/large", pieces=(b"x" * 80,)).of(app)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        third = await Call("POST", "/large", pieces=(b"x" * 80,)).of(app)
        return second.status, third.status

    assert asyncio.run(asyncio.wait_for(two(), 10)) == (503, 200)


def test_a_body_that_stands_still_is_refused() -> None:
    app = application(ROUTES, limits=Limits(idle_s=0.05))
    assert ask(app, "POST", "/large", pieces=(b"x",), hangs=True).status == 408


def test_a_request_that_takes_too_long_is_refused() -> None:
    answer = ask(application(ROUTES), "GET", "/endless")
    assert answer.status == 504 and "0.05 s" in answer.json["message"]


def test_a_client_that_takes_nothing_is_left() -> None:
    app = application(ROUTES, limits=Limits(idle_s=0.05))
    assert not ask(app, "GET", "/subjects/a/versions", takes=False).is_whole


def test_too_many_at_once_are_refused() -> None:
    app = application(ROUTES, limits=Limits(requests_max=2))

    async def scenario() -> list[int]:
        held = [asyncio.create_task(Call("GET", "/waits").of(app)) for _ in range(2)]
        await asyncio.sleep(0)
        answers = [await Call("GET", path).of(app) for path in ("/whoami", "/health")]
        for each in held:
            each.cancel()
        await asyncio.gather(*held, return_exceptions=True)
        answers.append(await Call("GET", "/whoami").of(app))
        return [each.status for each in answers]

    assert asyncio.run(asyncio.wait_for(scenario(), 10)) == [503, 200, 200]


def test_nothing_of_ours_leaks_and_the_log_has_the_trace(caplog: pytest.LogCaptureFixture) -> None:
    answer = ask(application(ROUTES), "GET", "/broken", headers={"x-request-id": "mine-1"})
    assert b"secret" not in answer.body and b"ottla" not in answer.body
    assert "mine-1" in answer.json["message"]
    [record] = caplog.records
    assert "mine-1" in record.getMessage() and record.exc_info


def test_an_answer_that_has_begun_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    answer = ask(application(ROUTES), "GET", "/breaks-off")
    assert (answer.status, answer.body, answer.is_whole) == (200, b"one", False)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("abc-1", True),
        ("a" * 128, True),
        ("a" * 129, False),
        ("a b", False),
        ("a\tb", False),
        ("", False),
        ("ü", False),
    ],
)
def test_a_sane_request_id_is_kept(given: str, kept: bool) -> None:
    answer = ask(application(ROUTES), "GET", "/missing", headers={"x-request-id": given})
    assert (answer.headers["x-request-id"] == given) == kept
    assert kept or len(answer.headers["x-request-id"]) == 32


def test_every_request_is_a_line_where_that_is_wanted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ottla.http.access")
    ask(application(ROUTES), "GET", "/missing")
    assert not caplog.records
    ask(
        application(ROUTES, has_access_log=True),
        "GET",
        '/mis"sing\n?a=\x1b[1m',
        headers={"x-request-id": "id-1"},
    )
    [record] = caplog.records
    words = record.getMessage()
    assert words.startswith('10.0.0.1 User:ANONYMOUS "GET /mis\\x22sing\\x0a?a=\\x1b[1m HTTP/1.1" 404 43 ')
    assert words.endswith(" test id-1")


class OnlyAlice:
    async def authenticate(self, request: Any) -> Principal:
        if request.headers.get("authorization") != "alice":
            raise HttpError(401, "who are you?", headers={"www-authenticate": "Basic"})
        return Principal("alice")


def test_one_hook_says_who_asks() -> None:
    app = application(ROUTES, authenticator=OnlyAlice())
    refused = ask(app, "GET", "/whoami")
    assert (refused.status, refused.headers["www-authenticate"]) == (401, "Basic")
    assert ask(app, "GET", "/whoami", headers={"authorization": "alice"}).body == b"User:alice"
    assert ask(app, "GET", "/health").status == 200
    assert ask(application(ROUTES), "GET", "/whoami").body == b"User:ANONYMOUS"


async def gone() -> str | None:
    return "nobody answers"


async def fine() -> str | None:
    return None


async def raises() -> str | None:
    raise OSError("no route")


def test_ready_says_why_not() -> None:
    assert ask(application(ROUTES, readiness=(ReadinessCheck("a", fine),)), "GET", "/ready").json == {
        "ready": True,
        "reasons": {},
    }
    checks = (ReadinessCheck("a", fine), ReadinessCheck("cluster", gone), ReadinessCheck("c", raises))
    answer = ask(application(ROUTES, readiness=checks), "GET", "/ready")
    assert answer.status == 503
    assert answer.json == {"ready": False, "reasons": {"cluster": "nobody answers", "c": "no route"}}
    assert ask(application(ROUTES, readiness=checks), "GET", "/health").status == 200


def test_metrics_count_by_route_and_not_by_path() -> None:
    app = application(ROUTES)
    for name in ("a", "b"):
        ask(app, "GET", f"/subjects/{name}/versions")
    ask(app, "GET", "/nowhere-1")
    ask(app, "BREW", "/nowhere-2")
    page = ask(app, "GET", "/metrics")
    assert page.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = page.body.decode().splitlines()
    row = 'service="test",method="GET",route="/subjects/{subject}/versions",status="200"'
    assert f"ottla_http_requests_total{{{row}}} 2" in lines
    assert 'ottla_http_requests_total{service="test",method="other",route="(none)",status="404"} 1' in lines
    assert 'ottla_http_requests_under_way{service="test"} 1' in lines
    assert not any("nowhere" in line for line in lines)


def test_a_stop_lets_finish_refuses_and_ends() -> None:
    finish = asyncio.Event()

    async def waits(request: Any, service: Any) -> Response:
        await finish.wait()
        return PlainTextResponse("done")

    app = application((Route("GET", "/finishes", waits), Route("GET", "/never", endless)))

    async def scenario() -> None:
        finishing = asyncio.create_task(Call("GET", "/finishes").of(app))
        never = asyncio.create_task(Call("GET", "/never").of(app))
        await asyncio.sleep(0)
        stopping = asyncio.create_task(app.stop(0.2))
        await asyncio.sleep(0)
        refused = await Call("GET", "/finishes").of(app)
        assert refused.status == 503 and refused.headers["connection"] == "close"
        ready = await Call("GET", "/ready").of(app)
        assert ready.status == 503 and "stopping" in ready.json["reasons"]["service"]
        finish.set()
        assert (await finishing).body == b"done"
        await stopping
        assert (await never).status == 503

    asyncio.run(asyncio.wait_for(scenario(), 10))
