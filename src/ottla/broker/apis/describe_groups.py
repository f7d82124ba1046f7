"""DescribeGroups (15): the members of classic groups and what each reads."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

Described = DescribeGroupsResponse.DescribedGroup

# Bit n stands for Kafka's AclOperation n; without an authorizer everybody may do everything.
GROUP_OPERATIONS = 0b1101_0100_1000


def handle(request: DescribeGroupsRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Ask the coordinator of each group."""

    def finish(groups: list[Described]) -> DescribeGroupsResponse:
        if request.include_authorized_operations:
            for group in groups:
                if not group.error_code:
                    group.authorized_operations = GROUP_OPERATIONS
        return DescribeGroupsResponse(groups=groups)

    return broker.coordination.each_group(
        request.groups,
        lambda groups, ids, now: groups.listing.describe(ids, version),
        lambda group_id, code: Described(group_id=group_id, error_code=code),
        finish,
    )


API = Api(
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    handle,
    long=in_slices(Cut("groups", "groups", ("",)), size=100),
)
