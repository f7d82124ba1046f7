"""Errors as a service's API shows them: raised as an HttpError anywhere, written by the form of the service.

E1  An HttpError is meant for the client: its message is shown. Any other exception is a fault of ours: the client gets
    500 and the id of the request, the log gets the trace.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Protocol

JSON_TYPE = "application/json"


class HttpError(Exception):
    """An answer that is an error. `code` is the API's own number, where it has one beyond the HTTP status."""

    def __init__(
        self,
        status: int,
        message: str = "",
        *,
        code: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message or HTTPStatus(status).phrase)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})

    @property
    def message(self) -> str:
        """What the client reads."""
        return str(self.args[0])


class ErrorForm(Protocol):
    """How an API writes its errors."""

    @property
    def content_type(self) -> str:
        """The media type of `body`."""
        ...

    def body(self, error: HttpError, request_id: str) -> bytes:
        """Write the error as the API's clients parse it."""
        ...


@dataclass(frozen=True, slots=True)
class ConfluentErrors:
    """The form of Confluent's registry, REST, Connect and ksqlDB: `{"error_code": 40401, "message": "..."}`."""

    content_type: str = field(default=JSON_TYPE)

    def body(self, error: HttpError, request_id: str) -> bytes:
        """Write the API's own code, or else the HTTP status, and the message."""
        return json.dumps({"error_code": error.code or error.status, "message": error.message}).encode()
