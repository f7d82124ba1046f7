"""AlterShareGroupOffsets (91): move the start offsets of a share group that has no members."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.share_offsets import change_offsets
from ottla.channel.connection import Connection
from ottla.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)


def handle(
    request: AlterShareGroupOffsetsRequest, version: int, connection: Connection, broker: Broker
) -> AlterShareGroupOffsetsResponse | Pending:
    """Let the group begin elsewhere."""
    return change_offsets(
        broker,
        request,
        lambda groups, token, now: groups.share.alter_offsets(token, request, now),
        AlterShareGroupOffsetsResponse,
    )


API = Api(AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse, handle)
