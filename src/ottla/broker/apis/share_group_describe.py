"""ShareGroupDescribe (77): members, assignments and epochs of share groups."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.describing import Descriptions, describe_each
from ottla.wire.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse


def describe(
    request: ShareGroupDescribeRequest, version: int, broker: Broker, members: slice
) -> ShareGroupDescribeResponse | Pending:
    """Ask the coordinator of each group."""
    return describe_each(
        request,
        broker,
        broker.share.check,
        ShareGroupDescribeResponse,
        ShareGroupDescribeResponse.DescribedGroup,
        lambda groups, ids: groups.share.describe(ids, members),
    )


_descriptions = Descriptions(describe, "group_ids")
API = Api(
    ShareGroupDescribeRequest, ShareGroupDescribeResponse, _descriptions.handle, long=_descriptions.in_steps
)
