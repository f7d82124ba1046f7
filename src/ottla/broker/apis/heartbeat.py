"""Heartbeat (12): keep a seat in a classic group."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(request: HeartbeatRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Hand the request to the group's coordinator."""

    def finish(outcome: HeartbeatResponse | BrokerError) -> HeartbeatResponse:
        return HeartbeatResponse(error_code=outcome.code) if isinstance(outcome, BrokerError) else outcome

    return broker.coordination.group(
        request.group_id, lambda groups, now: groups.heartbeat(request, now), finish
    )


API = Api(HeartbeatRequest, HeartbeatResponse, handle)
