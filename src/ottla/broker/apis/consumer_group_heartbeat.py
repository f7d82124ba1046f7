"""ConsumerGroupHeartbeat (68): join, stay in, and leave a group of the new protocol (KIP-848)."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.coordination import client_of
from ottla.broker.expression import COST
from ottla.broker.heartbeats import LONG_BYTES, NAME_COST
from ottla.broker.slicing import undivided
from ottla.channel.connection import Connection
from ottla.groups.group import Kind
from ottla.wire.errors import BrokerError
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def handle(
    request: ConsumerGroupHeartbeatRequest, version: int, connection: Connection, broker: Broker
) -> ConsumerGroupHeartbeatResponse | Pending:
    """Hand the request to the group's coordinator."""
    client = client_of(connection)
    if request.subscribed_topic_regex:
        connection.connections.turn_cost += COST  # whoever asks for many takes turns
    if request.subscribed_topic_names:
        connection.connections.turn_cost += NAME_COST * len(request.subscribed_topic_names)

    def finish(outcome: ConsumerGroupHeartbeatResponse | BrokerError) -> ConsumerGroupHeartbeatResponse:
        if isinstance(outcome, BrokerError):
            return ConsumerGroupHeartbeatResponse(error_code=outcome.code, error_message=outcome.message)
        return outcome

    try:
        broker.coordination.check(Kind.CONSUMER)
    except BrokerError as error:
        return finish(error)
    return broker.coordination.group(
        request.group_id,
        lambda groups, now: groups.consumer.heartbeat(request, version, client, now),
        finish,
    )


API = Api(
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    handle,
    long=undivided,
    long_bytes=LONG_BYTES,
)
