"""WriteShareGroupState (85): write down how far a share group has come."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.wire.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)


def handle(
    request: WriteShareGroupStateRequest, version: int, connection: Connection, broker: Broker
) -> Pending:
    """Ask the share coordinator of each share partition."""
    pending = Pending()
    broker.share.states.ask(request, pending.resolve)
    return pending


API = Api(
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    handle,
    long=in_slices(Cut("topics.partitions", "results.partitions"), size=100),
)
