"""A service as an ASGI application: one request from its head to its last byte.

    find the route -> who asks -> what kind of body and answer -> limits -> handler -> answer -> log and count

A1  Every request is answered in the API's own form, whatever went wrong, unless its answer has begun: then the
    connection is cut.
A2  A handler has a bounded time; after it the client gets 504 and the handler is cancelled.
A3  While the service stops, new requests get 503, and those under way have until `stop` gives up on them.
A4  No exception, path or module of ours reaches a client: that is for the log, under the id of the request.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from starlette.responses import Response

from ottla.http import access_log
from ottla.http.authentication import AnonymousAuthenticator, Authenticator
from ottla.http.body import BodyBudget, BodyReceiver, too_large
from ottla.http.error import ConfluentErrors, ErrorForm, HttpError
from ottla.http.exchange import BodyNotWanted, Exchange
from ottla.http.limits import Limits
from ottla.http.media_type import check_content, choose
from ottla.http.metrics.requests import RequestMetrics
from ottla.http.metrics.text import Family
from ottla.http.operations import operations
from ottla.http.readiness import ReadinessCheck
from ottla.http.request import Request
from ottla.http.request_id import HEADER, request_id
from ottla.http.route import Route
from ottla.http.router import Router
from ottla.world.clock import Clock
from ottla.world.entropy import Entropy

S = TypeVar("S")

LOGGER = logging.getLogger("ottla.http")
_NO_ROUTE = "(none)"
_CANCEL_S = 1.0


@dataclass(frozen=True, slots=True)
class ApplicationOptions:
    """How an application behaves beyond its table. `families` are metrics of the process that serves it."""

    clock: Clock
    entropy: Entropy
    limits: Limits = field(default_factory=Limits)
    errors: ErrorForm = field(default_factory=ConfluentErrors)
    authenticator: Authenticator = field(default_factory=AnonymousAuthenticator)
    readiness: Sequence[ReadinessCheck] = ()
    families: Callable[[], Iterable[Family]] = tuple
    has_access_log: bool = False


class Application(Generic[S]):
    """Serves a table of routes; `service` is what its handlers work on."""

    def __init__(
        self, name: str, routes: Iterable[Route[S]], service: S, options: ApplicationOptions
    ) -> None:
        self.name = name
        self.readiness = options.readiness
        self.is_stopping = False
        self._service = service
        self._options = options
        self._router: Router[S] = Router((*routes, *operations(self)))
        self._budget = BodyBudget(options.limits.held_bytes_max)
        self._metrics = RequestMetrics(name)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ended = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request, as ASGI has it."""
        if scope["type"] != "http":
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._metrics.under_way = len(self._tasks)
        try:
            await self._answer(scope, receive, send)
        finally:
            self._tasks.discard(task)
            self._metrics.under_way = len(self._tasks)
            if not self._tasks:
                self._ended.set()

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        clock, limits = self._options.clock, self._options.limits
        started = clock.monotonic()
        request = Request(scope, receive)
        request.id = request_id(request.headers.get(HEADER), self._options.entropy)
        request.parameters = {}
        exchange = Exchange(send, method=request.method, request_id=request.id, idle_s=limits.idle_s)
        exchange.closes = self.is_stopping
        served = _Served()
        try:
            served.response = await self._response(request, receive, served)
            await served.response(scope, receive, exchange)
        except BodyNotWanted:
            pass
        except HttpError as error:
            await self._reply_error(error, request, receive, exchange)
        except asyncio.CancelledError:
            if not self.is_stopping or exchange.has_begun:
                raise
            stopped = HttpError(503, "the service stopped before this was done", headers={"retry-after": "1"})
            await self._reply_error(stopped, request, receive, exchange)
        except TimeoutError:
            LOGGER.warning("%s: the client took nothing of its answer for %g s", request.id, limits.idle_s)
        except Exception:
            LOGGER.exception("%s: %s %s failed", request.id, request.method, served.route)
            failed = HttpError(500, f"Internal Server Error (request {request.id})")
            await self._reply_error(failed, request, receive, exchange)
        finally:
            await served.release()
            self._record(request, exchange, served, clock.monotonic() - started)

    async def _response(self, request: Request, receive: Any, served: "_Served") -> Response:
        limits = self._options.limits
        raw_path: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
        if request.method == "OPTIONS":
            return Response(status_code=204, headers={"allow": ", ".join(self._router.methods(raw_path))})
        match = self._router.find(request.method, raw_path)
        route = match.route
        served.route = route.path
        request.parameters = match.parameters
        if not route.is_open:
            if self.is_stopping:
                raise HttpError(503, "the service is stopping", headers={"retry-after": "1"})
            if len(self._tasks) > limits.requests_max:
                raise HttpError(503, "too many requests at once; try again", headers={"retry-after": "1"})
            request.principal = await self._options.authenticator.authenticate(request)
        request.media_type = choose(request.headers.get("accept", ""), route.produces)
        body_max = None if route.is_stream else route.body_bytes_max or limits.body_bytes_max
        _check_body(request, route, body_max)
        served.body = BodyReceiver(
            receive, self._budget, bytes_max=body_max, idle_s=limits.idle_s, is_stream=route.is_stream
        )
        request._receive = served.body
        timeout_s = None if route.is_stream else route.timeout_s or limits.timeout_s
        try:
            async with asyncio.timeout(timeout_s) as limit:
                return await route.handler(request, self._service)
        except TimeoutError:
            if not limit.expired():
                raise HttpError(504, "something that was asked did not answer in time") from None
            raise HttpError(504, f"the request took longer than {timeout_s:g} s") from None

    async def _reply_error(
        self, error: HttpError, request: Request, receive: Any, exchange: Exchange
    ) -> None:
        """Answer with an error, in the form of the API; where the answer has begun, it stays unfinished."""
        if exchange.has_begun:
            return
        errors = self._options.errors
        response = Response(
            errors.body(error, request.id), error.status, error.headers, media_type=errors.content_type
        )
        with contextlib.suppress(BodyNotWanted, TimeoutError):
            await response(request.scope, receive, exchange)

    def _record(self, request: Request, exchange: Exchange, served: "_Served", seconds: float) -> None:
        self._metrics.count(
            method=request.method,
            route=served.route,
            status=exchange.status,
            seconds=seconds,
            received=served.body.bytes if served.body is not None else 0,
            sent=exchange.bytes,
        )
        if self._options.has_access_log:
            access_log.LOGGER.info(
                "%s",
                access_log.line(
                    request.scope,
                    principal=str(request.principal),
                    status=exchange.status,
                    size=exchange.bytes,
                    seconds=seconds,
                    service=self.name,
                    request_id=request.id,
                ),
            )

    def families(self) -> Iterator[Family]:
        """Return the metrics of this service and of its process."""
        yield from self._metrics.families()
        yield from self._options.families()

    async def stop(self, timeout_s: float) -> None:
        """Refuse new requests, let those under way finish, and end those that take longer."""
        self.is_stopping = True
        await self._until_idle(timeout_s)
        for task in tuple(self._tasks):
            task.cancel()
        await self._until_idle(_CANCEL_S)

    async def _until_idle(self, timeout_s: float) -> None:
        self._ended.clear()
        if self._tasks:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._ended.wait()


class _Served:
    """What becomes known of a request while it is served."""

    def __init__(self) -> None:
        self.route = _NO_ROUTE
        self.body: BodyReceiver | None = None
        self.response: Response | None = None

    async def release(self) -> None:
        """Give back what the request held; a stream that was not sent to its end learns that it is over."""
        if self.body is not None:
            self.body.release()
        close = getattr(getattr(self.response, "body_iterator", None), "aclose", None)
        if close is not None:
            with contextlib.suppress(Exception):
                await close()


def _check_body(request: Request, route: Route[Any], bytes_max: int | None) -> None:
    """Refuse a body by what its head says of it."""
    length = request.headers.get("content-length")
    if length is not None and not (length.isascii() and length.isdigit()):
        raise HttpError(400, "content-length is not a number")
    if length is None and "transfer-encoding" not in request.headers and request.method in ("GET", "HEAD"):
        return
    if length != "0":
        check_content(request.headers.get("content-type", ""), route.consumes)
    if length is not None and bytes_max is not None and int(length) > bytes_max:
        raise too_large(bytes_max)
