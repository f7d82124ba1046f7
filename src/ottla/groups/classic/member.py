"""A member of a classic group. It never changes: a change makes another, so a draft of a group shares its members."""

from collections.abc import Iterable
from typing import NamedTuple

from ottla.replicated.keyed import Client
from ottla.wire.messages.join_group import JoinGroupRequest

PROTOCOLS_MAX = 128  # of a member; clients have a handful
_EMPTY_TEXT_BYTES = "".__sizeof__()

# A protocol's name, and what the member says of itself under it; those it likes best come first.
Protocols = tuple[tuple[str, bytes], ...]


class Waiting(NamedTuple):
    """A request that is answered later: its token, and the version its answer is written at."""

    token: int
    version: int


class Member(NamedTuple):
    """Who is in a group; `join` and `sync` are its requests that still wait for an answer.

    `is_new` holds until its first generation begins: till then it may be taken for gone even while it waits.
    """

    id: str
    instance_id: str | None
    client: Client
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    join: Waiting | None = None
    sync: Waiting | None = None

    def metadata(self, protocol: str | None) -> bytes:
        """Return what the member says of itself under a protocol; nothing if it does not speak it."""
        return next((data for name, data in self.protocols if name == protocol), b"")

    def vote(self, candidates: set[str]) -> str:
        """Return the candidate the member likes best."""
        return next(name for name, _ in self.protocols if name in candidates)

    @property
    def size_bytes(self) -> int:
        """How many bytes it holds: of what it said of itself, of its names, and of what it was assigned."""
        return (
            len(self.assignment)
            + protocols_bytes(self.protocols)
            + text_bytes(self.id)
            + text_bytes(self.instance_id or "")
            + client_bytes(self.client)
        )

    @property
    def description_cost(self) -> int:
        """How much there is to say of it, in members of which there is little."""
        return 1 + self.size_bytes // 2_048

    @property
    def waits(self) -> bool:
        """Whether the member sits in a request of its own, which is as good as a heartbeat."""
        return not self.is_new and (self.join is not None or self.sync is not None)


def text_bytes(text: str) -> int:
    """Return how many bytes the characters of a text take in memory: up to four times those it had as UTF-8."""
    return text.__sizeof__() - _EMPTY_TEXT_BYTES


def protocols_bytes(protocols: Iterable[tuple[str, bytes]]) -> int:
    """Return how many bytes protocols take, names and all."""
    return sum(text_bytes(name) + len(data) for name, data in protocols)


def client_bytes(client: Client) -> int:
    """Return how many bytes are kept of who a member is."""
    return text_bytes(client.client_id) + text_bytes(client.host)


def protocols_of(request: JoinGroupRequest) -> Protocols:
    """Return the protocols of a request, each once."""
    found: dict[str, bytes] = {}
    for each in request.protocols:
        found.setdefault(each.name, each.metadata)
    return tuple(found.items())
