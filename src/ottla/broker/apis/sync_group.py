"""SyncGroup (14): hand in the leader's plan, and learn one's own part of it."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.channel.connection import Connection
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_NAMES_PROTOCOL_SINCE = 5


def handle(
    request: SyncGroupRequest, version: int, connection: Connection, broker: Broker
) -> SyncGroupResponse | Pending:
    """Hand the request to the group's coordinator."""
    if version >= _NAMES_PROTOCOL_SINCE and None in (request.protocol_type, request.protocol_name):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return broker.coordination.group_later(
        request.group_id,
        lambda groups, token, now: groups.sync(request, version, token, now),
        lambda code: SyncGroupResponse(error_code=code),
    )


API = Api(SyncGroupRequest, SyncGroupResponse, handle)
