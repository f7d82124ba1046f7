"""ShareGroupDescribe (77): members, assignments and epochs of share groups."""

from ottla.broker.api import Api, Pending
from ottla.broker.apis.describe_groups import GROUP_OPERATIONS
from ottla.broker.broker import Broker
from ottla.channel.connection import Connection
from ottla.groups.machine import Groups
from ottla.replicated.decision import Decision
from ottla.wire.errors import BrokerError
from ottla.wire.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse

Described = ShareGroupDescribeResponse.DescribedGroup


def handle(
    request: ShareGroupDescribeRequest, version: int, connection: Connection, broker: Broker
) -> ShareGroupDescribeResponse | Pending:
    """Ask the coordinator of each group."""
    try:
        broker.share.check()
    except BrokerError as error:
        return ShareGroupDescribeResponse(
            groups=[Described(group_id=group_id, error_code=error.code) for group_id in request.group_ids]
        )

    def decide(groups: Groups, ids: list[str], now: int) -> Decision[list[Described]]:
        return Decision(groups.share.describe(ShareGroupDescribeRequest(group_ids=ids)).reply.groups)

    def finish(groups: list[Described]) -> ShareGroupDescribeResponse:
        if request.include_authorized_operations:
            for group in groups:
                if not group.error_code:
                    group.authorized_operations = GROUP_OPERATIONS
        return ShareGroupDescribeResponse(groups=groups)

    return broker.coordination.each_group(
        request.group_ids,
        decide,
        lambda group_id, code: Described(group_id=group_id, error_code=code),
        finish,
    )


API = Api(ShareGroupDescribeRequest, ShareGroupDescribeResponse, handle)
