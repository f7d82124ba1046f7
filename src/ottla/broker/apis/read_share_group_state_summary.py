"""ReadShareGroupStateSummary (87): tell where share partitions begin, without their records."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.wire.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)


def handle(
    request: ReadShareGroupStateSummaryRequest, version: int, connection: Connection, broker: Broker
) -> Pending:
    """Ask the share coordinator of each share partition."""
    pending = Pending()
    broker.share.states.ask(request, pending.resolve)
    return pending


API = Api(
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    handle,
    long=in_slices(Cut("topics.partitions", "results.partitions")),
)
