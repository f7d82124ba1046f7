"""The index: a page for people, and the same as JSON for programs."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from starlette.responses import HTMLResponse, JSONResponse, Response

from ottla.http.application import Application
from ottla.http.request import Request
from ottla.http.route import Route
from ottla.services.cluster import ClusterStatus
from ottla.services.index.page import page, summary
from ottla.services.service import ServiceContext

# Nothing is loaded but our own stylesheet, nothing is run, nobody puts the page into a frame.
PAGE_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


@dataclass(frozen=True, slots=True)
class Index:
    """What the page tells of."""

    bootstrap: str
    cluster: ClusterStatus
    addresses: Mapping[str, str]
    stylesheet: str


async def show(request: Request, index: Index) -> Response:
    """Say what there is, whether or not the cluster answers."""
    facts = summary(index.bootstrap, await index.cluster.ask(), index.addresses)
    if request.media_type == "application/json":
        return JSONResponse(facts, headers={"cache-control": "no-store", "vary": "accept"})
    return HTMLResponse(page(facts), headers=PAGE_HEADERS | {"vary": "accept"})


async def style(request: Request, index: Index) -> Response:
    """Give the stylesheet of the page."""
    return Response(index.stylesheet, media_type="text/css", headers={"cache-control": "max-age=3600"})


ROUTES: tuple[Route[Index], ...] = (
    Route("GET", "/", show, produces=("text/html", "application/json")),
    Route("GET", "/style.css", style, is_open=True),
)


def build_index(context: ServiceContext) -> Application[Index]:
    """Build the application of the index."""
    stylesheet = files("ottla.services.index").joinpath("style.css").read_text(encoding="utf-8")
    index = Index(context.bootstrap, context.cluster, context.addresses, stylesheet)
    return Application("index", ROUTES, index, context.options)
