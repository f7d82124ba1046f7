"""DeleteShareGroupState (86): forget share partitions."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.wire.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)


def handle(
    request: DeleteShareGroupStateRequest, version: int, connection: Connection, broker: Broker
) -> Pending:
    """Ask the share coordinator of each share partition."""
    pending = Pending()
    broker.share.states.ask(request, pending.resolve)
    return pending


API = Api(
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    handle,
    long=in_slices(Cut("topics.partitions", "results.partitions"), size=100),
)
