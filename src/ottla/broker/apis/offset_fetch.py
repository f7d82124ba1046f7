"""OffsetFetch (9): how far groups have come; v8 asks for several at once, v10 names topics by id."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.channel.connection import Connection
from ottla.groups.machine import Groups
from ottla.groups.offset_fetch import Asked, Found, asked_groups, fetch_response, refused_fetch
from ottla.replicated.decision import Decision
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse


def handle(request: OffsetFetchRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Ask the coordinator of each group."""
    asked: dict[str, Asked] = {group.group_id: group for group in asked_groups(request, version)}

    def decide(groups: Groups, ids: list[str], now: int) -> Decision[list[Found]]:
        stable = request.require_stable
        return Decision(
            [groups.offsets.fetch(asked[each], version, require_stable=stable).reply for each in ids]
        )

    def finish(found: list[Found]) -> OffsetFetchResponse:
        by_id = {group.group_id: group for group in found}
        return fetch_response([by_id[group_id] for group_id in asked], version)

    return broker.coordination.each_group(
        asked, decide, lambda group_id, code: refused_fetch(asked[group_id], code, version), finish
    )


API = Api(OffsetFetchRequest, OffsetFetchResponse, handle)
