"""A request as a handler sees it: Starlette's, with the values of the path, who asks, and an id."""

import json
from typing import Any, NoReturn

import starlette.requests
from starlette.requests import ClientDisconnect

from ottla.http.authentication import ANONYMOUS, Principal
from ottla.http.error import HttpError


class Request(starlette.requests.Request):
    """One request. `media_type` is what the client wants back, `parameters` are the values of the path."""

    id: str = ""
    principal: Principal = ANONYMOUS
    media_type: str = ""
    parameters: dict[str, str]

    async def read(self) -> bytes:
        """Return the whole body; HttpError where it is larger or slower than the limits."""
        try:
            return await self.body()
        except ClientDisconnect:
            raise HttpError(400, "the client hung up before the body was whole") from None

    async def read_json(self) -> Any:
        """Return the body as JSON; HttpError 400 when it is none."""
        body = await self.read()
        try:
            return json.loads(body.decode(), parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            why = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
            raise HttpError(400, f"the body is not JSON: {why}") from None


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")
