"""The way to the state of share partitions, on whichever broker keeps it.

K1  Whoever asks is patient: the topic is made for it, and what passes (a coordinator that moves, or reads its log) is
    asked again, of whoever leads by then.
K2  What is asked of another broker about one share partition goes one after the other: a write that is tried again must
    not overtake, nor be overtaken.
K3  Where the state is here, it is asked for by a call.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ottla.broker.internal_topics import SHARE_STATE, make
from ottla.broker.share_question import ASKED, ask_each, ask_one
from ottla.channel.peers import Peer
from ottla.share.key import ShareKey
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.share_states import ShareStates

_RETRY_S, _RETRY_S_MAX = 0.1, 1.0
_TRIES = 12
_PASSING = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class Persister:
    """What leaders of partitions, and coordinators of groups, ask for state."""

    def __init__(self, broker: "Broker", states: "ShareStates") -> None:
        self._broker = broker
        self._states = states
        self._lines: dict[ShareKey, deque[Callable[[], None]]] = {}

    def ask(self, request: Any, done: Callable[[Any], None]) -> None:
        """Ask about share partitions, wherever their state is; `done` gets the response."""

        def one(key: ShareKey, wish: Any, answered: Callable[[Any], None]) -> None:
            self._queue(type(request), key, wish, answered)

        if request.topics:
            make(self._broker, SHARE_STATE, lambda _: ask_each(request, one, done))
        else:
            ask_each(request, one, done)

    def _queue(self, asked: type[Message], key: ShareKey, wish: Any, done: Callable[[Any], None]) -> None:
        """Ask now, or once what was asked before is settled (K2)."""
        line = self._lines.get(key)
        if line is not None:
            line.append(lambda: self._send(asked, key, wish, done, 1))
        elif self._peer(key) is None:
            self._send(asked, key, wish, done, 1)
        else:
            self._lines[key] = deque()
            self._send(asked, key, wish, done, 1)

    def _peer(self, key: ShareKey) -> Peer | None:
        return self._broker.other_leader(SHARE_STATE.name, self._states.index(key))

    def _send(
        self, asked: type[Message], key: ShareKey, wish: Any, done: Callable[[Any], None], tries: int
    ) -> None:
        def settle(part: Any) -> None:
            if part.error_code in _PASSING and tries < _TRIES:
                # Others wait meanwhile, whoever keeps the state by then.
                self._lines.setdefault(key, deque())
                wait_s = min(_RETRY_S_MAX, _RETRY_S * 2 ** (tries - 1))
                self._broker.call_later(wait_s, lambda: self._send(asked, key, wish, done, tries + 1))
                return
            try:
                done(part)
            finally:
                self._next(key)  # whatever became of this one, the next has its turn

        peer = self._peer(key)
        if peer is None:
            self._states.one(asked, key, wish, settle)
        else:
            _ask_there(peer, asked, key, wish, settle)

    def _next(self, key: ShareKey) -> None:
        line = self._lines.get(key)
        if line:
            line.popleft()()
        elif line is not None:
            del self._lines[key]


def _ask_there(
    peer: Peer, asked: type[Message], key: ShareKey, wish: Any, settle: Callable[[Any], None]
) -> None:
    """Ask another broker about one share partition."""
    kind = ASKED[asked]

    def answered(answer: Any) -> None:
        if isinstance(answer, Exception):
            code, message = ErrorCode.COORDINATOR_NOT_AVAILABLE, str(answer)
            settle(kind.part(partition=key.partition, error_code=code, error_message=message))
            return
        parts = [part for result in answer.results for part in result.partitions]
        if parts:
            settle(parts[0])
        else:
            code = ErrorCode.UNKNOWN_SERVER_ERROR
            settle(kind.part(partition=key.partition, error_code=code, error_message="nothing was said"))

    peer.ask(ask_one(asked, key, wish), kind.response, answered)
