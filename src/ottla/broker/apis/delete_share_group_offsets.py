"""DeleteShareGroupOffsets (92): forget a share group's offsets of some topics."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)


def handle(
    request: DeleteShareGroupOffsetsRequest, version: int, connection: Connection, broker: Broker
) -> DeleteShareGroupOffsetsResponse | Pending:
    """Ask the group's coordinator, which asks the share coordinators."""
    try:
        broker.share.check()
    except BrokerError as error:
        return _refuse(error.code)
    if not request.group_id:
        return _refuse(ErrorCode.INVALID_GROUP_ID)
    if not request.topics:
        return DeleteShareGroupOffsetsResponse()
    return broker.coordination.group_later(
        request.group_id,
        lambda groups, token, now: groups.share.delete_offsets(token, request),
        _refuse,
    )


def _refuse(code: ErrorCode) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(error_code=code)


API = Api(DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse, handle)
