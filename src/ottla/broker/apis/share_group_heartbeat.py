"""ShareGroupHeartbeat (76): join, stay in, and leave a share group (KIP-932)."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.coordination import client_of
from ottla.broker.heartbeats import LONG_BYTES, NAME_COST
from ottla.broker.share_coordination import check_member_id
from ottla.broker.slicing import undivided
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse


def handle(
    request: ShareGroupHeartbeatRequest, version: int, connection: Connection, broker: Broker
) -> ShareGroupHeartbeatResponse | Pending:
    """Hand the request to the group's coordinator."""
    client = client_of(connection)
    if request.subscribed_topic_names:
        connection.connections.turn_cost += NAME_COST * len(request.subscribed_topic_names)

    def finish(outcome: ShareGroupHeartbeatResponse | BrokerError) -> ShareGroupHeartbeatResponse:
        if isinstance(outcome, BrokerError):
            return ShareGroupHeartbeatResponse(error_code=outcome.code, error_message=outcome.message)
        return outcome

    try:
        broker.share.check()
        check_member_id(request.member_id)
    except BrokerError as error:
        return finish(error)
    return broker.coordination.group(
        request.group_id, lambda groups, now: groups.share.heartbeat(request, client, now), finish
    )


API = Api(
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    handle,
    long=undivided,
    long_bytes=LONG_BYTES,
)
