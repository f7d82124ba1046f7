"""SyncGroup (14): hand in the leader's plan, and learn one's own part of it."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.channel.connection import Connection
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


def handle(request: SyncGroupRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Hand the request to the group's coordinator."""
    return broker.coordination.group_later(
        request.group_id,
        lambda groups, token, now: groups.sync(request, version, token, now),
        lambda code: SyncGroupResponse(error_code=code),
    )


API = Api(SyncGroupRequest, SyncGroupResponse, handle)
