"""InitializeShareGroupState (83): give share partitions durable state, or begin it anew."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)


def handle(
    request: InitializeShareGroupStateRequest, version: int, connection: Connection, broker: Broker
) -> Pending:
    """Ask the share coordinator of each share partition."""
    pending = Pending()
    broker.share.states.ask(request, pending.resolve)
    return pending


API = Api(
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    handle,
    long=in_slices(Cut("topics.partitions", "results.partitions"), size=100),
)
