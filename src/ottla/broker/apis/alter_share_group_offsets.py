"""AlterShareGroupOffsets (91): move the start offsets of a share group that has no members."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)


def handle(
    request: AlterShareGroupOffsetsRequest, version: int, connection: Connection, broker: Broker
) -> AlterShareGroupOffsetsResponse | Pending:
    """Ask the group's coordinator, which asks the share coordinators."""
    try:
        broker.share.check()
    except BrokerError as error:
        return _refuse(error.code)
    if not request.group_id:
        return _refuse(ErrorCode.INVALID_GROUP_ID)
    if not request.topics:
        return AlterShareGroupOffsetsResponse()
    return broker.coordination.group_later(
        request.group_id,
        lambda groups, token, now: groups.share.alter_offsets(token, request, now),
        _refuse,
    )


def _refuse(code: ErrorCode) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(error_code=code)


API = Api(AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse, handle)
