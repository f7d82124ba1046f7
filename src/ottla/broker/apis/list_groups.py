"""ListGroups (16): every group this broker coordinates, of some states and types or of all."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.channel.connection import Connection
from ottla.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse


def handle(request: ListGroupsRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Ask every coordinator. There are many, and each filter is looked at once, before."""
    states = frozenset(state.lower().strip() for state in request.states_filter)
    types = frozenset(type.lower() for type in request.types_filter)
    return broker.coordination.every_partition(
        lambda groups, now: groups.listing.list_groups(states, types),
        lambda groups, code: ListGroupsResponse(groups=groups, error_code=code),
    )


API = Api(ListGroupsRequest, ListGroupsResponse, handle)
