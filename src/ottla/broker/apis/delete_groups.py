"""DeleteGroups (42): remove groups that nobody is in, with their offsets."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.channel.connection import Connection
from ottla.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse

Deleted = DeleteGroupsResponse.DeletableGroupResult


def handle(request: DeleteGroupsRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Ask the coordinator of each group."""
    return broker.coordination.each_group(
        request.groups_names,
        lambda groups, ids, now: groups.listing.delete(ids),
        lambda group_id, code: Deleted(group_id=group_id, error_code=code),
        lambda results: DeleteGroupsResponse(results=results),
    )


API = Api(DeleteGroupsRequest, DeleteGroupsResponse, handle)
