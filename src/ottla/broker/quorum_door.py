"""The door to the replica of the metadata log that this node has: requests in, and its answers out."""

from ottla.broker.api import Pending
from ottla.broker.broker import Broker
from ottla.channel.connection import Connection
from ottla.wire.message import Message


def ask_quorum(request: Message, version: int, connection: Connection, broker: Broker) -> Pending:
    """Hand a request to Raft, which answers now, or once it can."""
    pending = Pending()
    broker.quorum.serve(request, version, connection.listener, pending.resolve)
    return pending
