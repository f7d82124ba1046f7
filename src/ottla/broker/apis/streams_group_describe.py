"""StreamsGroupDescribe (89): topologies, members and tasks of streams groups.

v1 can ask for a topology's description as its author sees it (KIP-1331). None is kept here, and the answer says so.
"""

from functools import partial

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.describing import Descriptions, describe_each
from ottla.groups.group import Kind
from ottla.wire.messages.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)


def describe(
    request: StreamsGroupDescribeRequest, version: int, broker: Broker, members: slice
) -> StreamsGroupDescribeResponse | Pending:
    """Ask the coordinator of each group."""
    described = request.include_topology_description
    return describe_each(
        request,
        broker,
        partial(broker.coordination.check, Kind.STREAMS),
        StreamsGroupDescribeResponse,
        StreamsGroupDescribeResponse.DescribedGroup,
        lambda groups, ids: groups.streams.describe(ids, members, described=described),
    )


_descriptions = Descriptions(describe, "group_ids")
API = Api(
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    _descriptions.handle,
    long=_descriptions.in_steps,
)
