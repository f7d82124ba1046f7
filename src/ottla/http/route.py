"""A row of a service's table: a method, a path, and the function that answers.

    ROUTES = (
        Route("GET", "/subjects", list_subjects, produces=JSON_TYPES),
        Route("POST", "/subjects/{subject}/versions", register, consumes=JSON_TYPES, produces=JSON_TYPES),
    )

A handler gets the request and the service, and returns a response or raises an HttpError. GET serves HEAD as well, and
OPTIONS is answered from the table.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from starlette.responses import Response

from ottla.http.request import Request

S = TypeVar("S")

Handler = Callable[[Request, S], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route(Generic[S]):
    """What answers a method on a path.

    `consumes` and `produces` are media types, the preferred one first; none stands for any. `is_open` serves callers
    who have not said who they are. `is_stream` is for bodies without end, in either direction: no limit of time or size
    holds for the whole, only for each piece. `timeout_s` and `body_bytes_max` replace the limits of the service.
    """

    method: str
    path: str
    handler: Handler[S]
    consumes: tuple[str, ...] = ()
    produces: tuple[str, ...] = ()
    is_open: bool = False
    is_stream: bool = False
    timeout_s: float | None = None
    body_bytes_max: int | None = None


AnyRoute = Route[Any]
