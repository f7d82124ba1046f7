"""ConsumerGroupDescribe (69): members, assignments and epochs of groups of the new protocol."""

from functools import partial

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.describing import Descriptions, describe_each
from ottla.groups.group import Kind
from ottla.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)


def describe(
    request: ConsumerGroupDescribeRequest, version: int, broker: Broker, members: slice
) -> ConsumerGroupDescribeResponse | Pending:
    """Ask the coordinator of each group."""
    return describe_each(
        request,
        broker,
        partial(broker.coordination.check, Kind.CONSUMER),
        ConsumerGroupDescribeResponse,
        ConsumerGroupDescribeResponse.DescribedGroup,
        lambda groups, ids: groups.consumer.describe(ids, members),
    )


_descriptions = Descriptions(describe, "group_ids")
API = Api(
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    _descriptions.handle,
    long=_descriptions.in_steps,
)
