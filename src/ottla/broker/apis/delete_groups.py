"""DeleteGroups (42): remove groups that nobody is in, with their offsets and the state of their share partitions."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse

Deleted = DeleteGroupsResponse.DeletableGroupResult


def handle(request: DeleteGroupsRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Ask the coordinator of each group."""
    pending = Pending()
    results: dict[str, Deleted] = {}
    names = list(dict.fromkeys(request.groups_names))

    def deleted(result: Deleted) -> None:
        results[result.group_id] = result
        if len(results) == len(names):
            pending.resolve(DeleteGroupsResponse(results=[results[name] for name in names]))

    for name in names:
        broker.share.delete_group(name, deleted)
    if not names:
        pending.resolve(DeleteGroupsResponse())
    return pending


API = Api(
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    handle,
    long=in_slices(Cut("groups_names", "results", ("",)), size=100),
)
