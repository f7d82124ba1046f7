"""What every service answers besides its API: `/health`, `/ready` and `/metrics`.

O1  `/health` says that the process serves, and depends on nothing else: who restarts processes asks it.
O2  `/ready` says whether requests can succeed, with the reasons why not: who sends requests asks it.
O3  All three are open, so that they answer those who watch a cluster whose authentication fails.
"""

from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from ottla.http.metrics.text import CONTENT_TYPE, page_pieces
from ottla.http.readiness import problems
from ottla.http.request import Request
from ottla.http.route import Route

if TYPE_CHECKING:
    from ottla.http.application import Application

_NOT_KEPT = {"cache-control": "no-store"}


def operations(application: "Application[Any]") -> tuple[Route[Any], ...]:
    """Return the routes that every service has."""

    async def health(request: Request, service: object) -> Response:
        return JSONResponse({"status": "live"}, headers=_NOT_KEPT)

    async def ready(request: Request, service: object) -> Response:
        reasons = await problems(application.readiness)
        if application.is_stopping:
            reasons["service"] = "it is stopping"
        answer = {"ready": not reasons, "reasons": reasons}
        return JSONResponse(answer, 503 if reasons else 200, headers=_NOT_KEPT)

    async def metrics(request: Request, service: object) -> Response:
        page = b"".join(page_pieces(application.families()))
        return Response(page, media_type=CONTENT_TYPE)

    return (
        Route("GET", "/health", health, is_open=True),
        Route("GET", "/ready", ready, is_open=True),
        Route("GET", "/metrics", metrics, is_open=True),
    )
