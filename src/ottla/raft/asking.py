"""Asking: a request is sent where none is under way."""

from collections.abc import Callable

from ottla.raft.replica import Replica
from ottla.raft.settings import Node
from ottla.wire.message import Message


def send(replica: Replica, node: Node, ask: Callable[[], Message], now: int) -> bool:
    """Send a request, unless the node still owes an answer or is left alone for a moment; True when it was sent."""
    if not replica.peers.is_ready(node.id, now):
        return False
    replica.peers.sent(node.id, replica.outbox.ask(node, ask()), now)
    return True
