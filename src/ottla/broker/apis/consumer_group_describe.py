"""ConsumerGroupDescribe (69): members, assignments and epochs of groups of the new protocol."""

from ottla.broker.api import Api, Pending
from ottla.broker.apis.describe_groups import GROUP_OPERATIONS
from ottla.broker.broker import Broker
from ottla.broker.coordination import client_of
from ottla.channel.connection import Connection
from ottla.groups.machine import Groups
from ottla.replicated.decision import Decision
from ottla.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)

Described = ConsumerGroupDescribeResponse.DescribedGroup


def handle(
    request: ConsumerGroupDescribeRequest, version: int, connection: Connection, broker: Broker
) -> Pending:
    """Ask the coordinator of each group."""
    client = client_of(connection)

    def decide(groups: Groups, ids: list[str], now: int) -> Decision[list[Described]]:
        part = ConsumerGroupDescribeRequest(group_ids=ids)
        return Decision(groups.consumer.describe(part, version, client, now).reply.groups)

    def finish(groups: list[Described]) -> ConsumerGroupDescribeResponse:
        if request.include_authorized_operations:
            for group in groups:
                if not group.error_code:
                    group.authorized_operations = GROUP_OPERATIONS
        return ConsumerGroupDescribeResponse(groups=groups)

    return broker.coordination.each_group(
        request.group_ids,
        decide,
        lambda group_id, code: Described(group_id=group_id, error_code=code),
        finish,
    )


API = Api(ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, handle)
