"""The door to the replica of the metadata log that this node has: requests in, and its answers out.

A fetch may wait there. When its connection closes Raft is told, so that it does not take the place of another's.
"""

from collections.abc import Callable
from functools import partial

from ottla.broker.api import Pending
from ottla.broker.broker import Broker
from ottla.channel.connection import Connection
from ottla.wire.message import Message

_Reply = Callable[[Message], None]


def ask_quorum(
    request: Message,
    version: int,
    connection: Connection,
    broker: Broker,
    prepare: Callable[[Message], None] | None = None,
) -> Pending:
    """Hand a request to Raft, which answers now, or once it can; `prepare` may change the answer before it leaves."""
    pending = Pending()
    waiting = broker.quorum_waiting
    is_answered = False

    def answered(answer: Message) -> None:
        nonlocal is_answered
        is_answered = True
        if (others := waiting.get(connection)) is not None:
            others.pop(answered, None)
        if prepare is not None:
            prepare(answer)
        pending.resolve(answer)

    broker.quorum.serve(request, version, connection.listener, answered)
    if not is_answered:
        if connection not in waiting:
            waiting[connection] = {}
            connection.on_close.append(partial(_closed, connection, broker))
        waiting[connection][answered] = None
    return pending


def _closed(connection: Connection, broker: Broker) -> None:
    for reply in broker.quorum_waiting.pop(connection, ()):
        broker.quorum.forget(reply)
