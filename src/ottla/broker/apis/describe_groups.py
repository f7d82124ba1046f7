"""DescribeGroups (15): the members of classic groups and what each reads."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.describing import GROUP_OPERATIONS, Descriptions
from ottla.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

Described = DescribeGroupsResponse.DescribedGroup


def describe(request: DescribeGroupsRequest, version: int, broker: Broker, members: slice) -> Pending:
    """Ask the coordinator of each group."""

    def finish(groups: list[Described]) -> DescribeGroupsResponse:
        if request.include_authorized_operations:
            for group in groups:
                if not group.error_code:
                    group.authorized_operations = GROUP_OPERATIONS
        return DescribeGroupsResponse(groups=groups)

    return broker.coordination.each_group(
        request.groups,
        lambda groups, ids, now: groups.listing.describe(ids, version, members),
        lambda group_id, code: Described(group_id=group_id, error_code=code),
        finish,
    )


_descriptions = Descriptions(describe, "groups")
API = Api(DescribeGroupsRequest, DescribeGroupsResponse, _descriptions.handle, long=_descriptions.in_steps)
