"""ListGroups (16): every group this broker coordinates, of some states and types or of all."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.channel.connection import Connection
from ottla.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse


def handle(request: ListGroupsRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Ask every coordinator."""
    return broker.coordination.every_partition(
        lambda groups, now: groups.listing.list_groups(request.states_filter, request.types_filter),
        lambda groups, code: ListGroupsResponse(groups=groups, error_code=code),
    )


API = Api(ListGroupsRequest, ListGroupsResponse, handle)
