"""Who asks. Every service has one authenticator, and everything it does for a request it does as that principal.

A1  A route that is not open is reached only by a request whose authenticator returned a principal.
A2  The credentials go on to the broker, so no service may do more than who calls it.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ottla.http.request import Request


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks, by Kafka's kinds and names, and the client settings with which the broker can be asked as them."""

    name: str
    kind: str = "User"
    client_settings: dict[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS = Principal("ANONYMOUS")


class Authenticator(Protocol):
    """Finds out who asks."""

    async def authenticate(self, request: "Request") -> Principal:
        """Return the principal; HttpError 401, with `www-authenticate`, where there is none."""
        ...


class AnonymousAuthenticator:
    """Takes everybody as Kafka takes those who come without credentials."""

    async def authenticate(self, request: "Request") -> Principal:
        """Return the anonymous principal."""
        return ANONYMOUS
