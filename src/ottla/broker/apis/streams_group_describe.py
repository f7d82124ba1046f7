"""StreamsGroupDescribe (89): topologies, members and tasks of streams groups.

v1 can ask for a topology's description as its author sees it (KIP-1331). None is kept here, and the answer says so.
"""

from functools import partial

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.describing import describe_each
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.groups.group import Kind
from ottla.wire.messages.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)


def handle(
    request: StreamsGroupDescribeRequest, version: int, connection: Connection, broker: Broker
) -> StreamsGroupDescribeResponse | Pending:
    """Ask the coordinator of each group."""
    described = request.include_topology_description
    return describe_each(
        request,
        broker,
        partial(broker.coordination.check, Kind.STREAMS),
        StreamsGroupDescribeResponse,
        StreamsGroupDescribeResponse.DescribedGroup,
        lambda groups, ids: groups.streams.describe(ids, described=described),
    )


API = Api(
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    handle,
    long=in_slices(Cut("group_ids", "groups", ("",)), size=100),
)
