"""ConsumerGroupDescribe (69): members, assignments and epochs of groups of the new protocol."""

from functools import partial

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.describing import describe_each
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.groups.group import Kind
from ottla.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)


def handle(
    request: ConsumerGroupDescribeRequest, version: int, connection: Connection, broker: Broker
) -> ConsumerGroupDescribeResponse | Pending:
    """Ask the coordinator of each group."""
    return describe_each(
        request,
        broker,
        partial(broker.coordination.check, Kind.CONSUMER),
        ConsumerGroupDescribeResponse,
        ConsumerGroupDescribeResponse.DescribedGroup,
        lambda groups, ids: groups.consumer.describe(ids),
    )


API = Api(
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    handle,
    long=in_slices(Cut("group_ids", "groups", ("",)), size=100),
)
