"""ShareGroupDescribe (77): members, assignments and epochs of share groups."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.describing import describe_each
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.wire.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse


def handle(
    request: ShareGroupDescribeRequest, version: int, connection: Connection, broker: Broker
) -> ShareGroupDescribeResponse | Pending:
    """Ask the coordinator of each group."""
    return describe_each(
        request,
        broker,
        broker.share.check,
        ShareGroupDescribeResponse,
        ShareGroupDescribeResponse.DescribedGroup,
        lambda groups, ids: groups.share.describe(ids),
    )


API = Api(
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    handle,
    long=in_slices(Cut("group_ids", "groups", ("",)), size=100),
)
