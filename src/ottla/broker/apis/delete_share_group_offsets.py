"""DeleteShareGroupOffsets (92): forget a share group's offsets of some topics."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.share_offsets import change_offsets
from ottla.channel.connection import Connection
from ottla.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)


def handle(
    request: DeleteShareGroupOffsetsRequest, version: int, connection: Connection, broker: Broker
) -> DeleteShareGroupOffsetsResponse | Pending:
    """Let the group know nothing of the topics."""
    return change_offsets(
        broker,
        request,
        lambda groups, token, now: groups.share.delete_offsets(token, request),
        DeleteShareGroupOffsetsResponse,
    )


API = Api(DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse, handle)
