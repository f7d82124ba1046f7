"""Questions from one node of a cluster to another, over one connection to each.

N1  Every question ends, by its answer, by LinkLost, or by Late when its time is up; and always in a later turn.
N2  A connection is made when there is something to ask, and made again no sooner than `backoff_s` after it failed.
N3  The version of a question is the newest that both ends know: the peer is asked for its own first.
N4  A connection that keeps an answer back for too long is given up, with all that was asked on it: the peer may have
    stopped in its tracks, and a new connection finds out.

    IDLE --ask()--> CONNECTING --> GREETING --> OPEN --lost--> IDLE
"""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

from ottla.channel.link import Link, LinkLost
from ottla.wire.apis import BY_KEY
from ottla.wire.message import Message
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.world.network import Network

M = TypeVar("M", bound=Message)

_GREETING_VERSION = 3
_SOFTWARE = "ottla"


class Late(LinkLost):
    """No answer came in time."""


class Address(NamedTuple):
    """Where a node is reached by other nodes."""

    host: str
    port: int


class Timers(Protocol):
    """The loop, as far as peers use it."""

    def call_later(self, delay: float, callback: Callable[[], object]) -> Any:
        """Call after `delay` seconds; the result has `cancel()`."""
        ...

    def call_soon(self, callback: Callable[[], object]) -> Any:
        """Call at the end of the turn."""
        ...


class _Question(NamedTuple):
    request: Message
    response: type[Message]
    answered: Callable[[Any], object]


class Peer:
    """One node, as another sees it."""

    def __init__(
        self,
        network: Network,
        timers: Timers,
        address: Callable[[], Address | None],
        client_id: str,
        *,
        timeout_s: float = 30.0,
        backoff_s: float = 0.05,
        lost: Callable[[], object] | None = None,
    ) -> None:
        """`address` is asked anew for each connection; `lost` is told when one that was open ends."""
        self._network = network
        self._timers = timers
        self._address = address
        self._client_id = client_id
        self._timeout_s = timeout_s
        self._backoff_s = backoff_s
        self._on_lost = lost
        self._link: Link | None = None
        self._waiting: list[_Question] = []
        self._versions: dict[int, range] = {}
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def is_open(self) -> bool:
        """Whether a question goes out at once."""
        return self._link is not None and bool(self._versions)

    def ask(self, request: Message, response: type[M], answered: Callable[[M | Exception], object]) -> None:
        """Ask; `answered` is called with the answer, or with why there is none."""
        if self._closed:
            self._timers.call_soon(lambda: answered(LinkLost("this node is stopping")))
            return
        self._waiting.append(_Question(request, response, answered))
        if self.is_open:
            self._flush()
        elif self._task is None:
            self._task = asyncio.ensure_future(self._connect())

    def hang_up(self, reason: str = "this node hung up") -> None:
        """End the connection, or the attempt to make one, and every question that waits for it."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
            self._refuse(LinkLost(reason))
        if self._link is not None:
            self._link.close(LinkLost(reason))

    def close(self) -> None:
        """Ask nothing any more."""
        self._closed = True
        self.hang_up("this node is stopping")
        self._refuse(LinkLost("this node is stopping"))

    async def _connect(self) -> None:
        try:
            address = self._address()
            if address is None:
                raise LinkLost("nobody knows where this node is")
            link = await asyncio.wait_for(
                self._network.connect(*address, lambda: Link(self._client_id, self._lost)), self._timeout_s
            )
        except (OSError, TimeoutError, LinkLost) as error:
            await asyncio.sleep(self._backoff_s)
            self._task = None
            self._refuse(error if isinstance(error, LinkLost) else LinkLost(str(error) or "no connection"))
            return
        self._task = None
        self._link = link
        greeting = ApiVersionsRequest(client_software_name=_SOFTWARE, client_software_version="1")
        self._send(link, _Question(greeting, ApiVersionsResponse, self._greeted), _GREETING_VERSION)

    def _greeted(self, answer: ApiVersionsResponse | Exception) -> None:
        if isinstance(answer, Exception):
            return  # the link is lost, which ends everything
        self._versions = {each.api_key: range(each.min_version, each.max_version + 1) for each in answer.api_keys}
        self._flush()

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        for question in waiting:
            key = question.request.api_key
            assert key is not None
            theirs, ours = self._versions.get(key, range(0)), BY_KEY[key].stable_versions
            version = min(theirs.stop, ours.stop) - 1
            if self._link is None:
                question.answered(LinkLost("the connection ended"))
            elif version < max(theirs.start, ours.start):
                question.answered(LinkLost(f"the peer does not serve {BY_KEY[key].name}"))
            else:
                self._send(self._link, question, version)

    def _send(self, link: Link, question: _Question, version: int) -> None:
        def late() -> None:
            link.close(Late(f"no answer within {self._timeout_s:g} s"))

        timer = self._timers.call_later(self._timeout_s, late)

        def answered(answer: Message | Exception) -> None:
            timer.cancel()
            question.answered(answer)

        link.ask(question.request, question.response, version, answered)

    def _lost(self, link: Link, reason: Exception) -> None:
        if link is not self._link:
            return
        self._link = None
        self._versions = {}
        self._refuse(reason)
        if self._on_lost is not None:
            self._on_lost()

    def _refuse(self, reason: Exception) -> None:
        waiting, self._waiting = self._waiting, []
        for question in waiting:
            question.answered(reason)
