"""OffsetDelete (47): forget how far a group has come in topics that nobody in it reads."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError
from ottla.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse


def handle(request: OffsetDeleteRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Hand the request to the group's coordinator."""

    def finish(outcome: OffsetDeleteResponse | BrokerError) -> OffsetDeleteResponse:
        return OffsetDeleteResponse(error_code=outcome.code) if isinstance(outcome, BrokerError) else outcome

    return broker.coordination.group(
        request.group_id, lambda groups, now: groups.offsets.delete(request), finish
    )


API = Api(
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    handle,
    long=in_slices(Cut("topics.partitions", "topics.partitions")),
)
