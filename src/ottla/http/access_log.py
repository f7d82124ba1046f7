"""The access log: a line for each request, through the logger `ottla.http.access`.

    127.0.0.1 User:ANONYMOUS "GET /subjects HTTP/1.1" 200 17 0.004 registry 4f2c...

Address, principal, request, status, bytes of the answer, seconds, service, id. Nothing that a client sends can begin
another line or colour a terminal.
"""

import logging
from typing import Any

LOGGER = logging.getLogger("ottla.http.access")
_TARGET_MAX = 500


def line(
    scope: Any, *, principal: str, status: int, size: int, seconds: float, service: str, request_id: str
) -> str:
    """Return the line for a request that is answered."""
    client = scope.get("client") or ("-", 0)
    target: bytes = scope.get("raw_path") or b"?"
    if scope.get("query_string"):
        target += b"?" + scope["query_string"]
    request = f"{scope['method']} {printable(target)} HTTP/{scope['http_version']}"
    return (
        f'{client[0]} {printable(principal.encode())} "{request}" {status or "-"} {size} {seconds:.3f} {service} '
        f"{request_id}"
    )


def printable(text: bytes) -> str:
    """Return text with everything but plain characters escaped, and cut where it is very long."""
    plain = text[:_TARGET_MAX]
    shown = "".join(chr(each) if 0x20 < each < 0x7F and each != 0x22 else f"\\x{each:02x}" for each in plain)
    return shown + "..." if len(text) > _TARGET_MAX else shown
