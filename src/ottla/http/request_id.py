"""The id of a request: what the client sent as X-Request-Id if it can be logged as it is, or else a new one."""

import re

from ottla.world.entropy import Entropy

HEADER = "x-request-id"
_SANE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+=@-]{0,127}")


def request_id(given: str | None, entropy: Entropy) -> str:
    """Return the id under which a request is answered and logged."""
    if given is not None and _SANE.fullmatch(given):
        return given
    return entropy.uuid().hex()
