"""JoinGroup (11): take a seat in a classic group; answered when everybody has one."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.coordination import client_of
from ottla.channel.connection import Connection
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse


def handle(request: JoinGroupRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Hand the request to the group's coordinator."""
    client = client_of(connection)

    def refuse(code: ErrorCode) -> JoinGroupResponse:
        # Old clients cannot read a missing protocol name.
        name = None if version >= 7 else ""
        return JoinGroupResponse(error_code=code, member_id=request.member_id, protocol_name=name)

    return broker.coordination.group_later(
        request.group_id,
        lambda groups, token, now: groups.join(request, version, client, token, now),
        refuse,
    )


API = Api(JoinGroupRequest, JoinGroupResponse, handle)
