"""OffsetFetch (9): how far groups have come; v8 asks for several at once, v10 names topics by id."""

from collections.abc import Hashable

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.mentions import mentions
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.groups.machine import Groups
from ottla.groups.offset_fetch import Asked, Found, asked_groups, fetch_response, refused_fetch
from ottla.replicated.decision import Decision
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse


def handle(request: OffsetFetchRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Ask the coordinator of each group; who asks for all that one knows is told so no more than twice."""
    asked = list(mentions(asked_groups(request, version), _whole))
    by_id: dict[str, list[Asked]] = {}
    for group in asked:
        by_id.setdefault(group.group_id, []).append(group)

    def decide(groups: Groups, ids: list[str], now: int) -> Decision[list[list[Found]]]:
        stable = request.require_stable
        return Decision(
            [
                [groups.offsets.fetch(each, version, require_stable=stable).reply for each in by_id[group_id]]
                for group_id in ids
            ]
        )

    def refuse(group_id: str, code: ErrorCode) -> list[Found]:
        if code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
            code = ErrorCode.NOT_COORDINATOR  # as in Kafka: consumers before 3.9 do not try the other again
        return [refused_fetch(each, code, version) for each in by_id[group_id]]

    def finish(found: list[list[Found]]) -> OffsetFetchResponse:
        answers = {group[0].group_id: iter(group) for group in found}
        return fetch_response([next(answers[group.group_id]) for group in asked], version)

    return broker.coordination.each_group(by_id, decide, refuse, finish)


def _whole(group: Asked) -> Hashable:
    return (group.group_id, group.member_id, group.member_epoch) if group.topics is None else id(group)


API = Api(
    OffsetFetchRequest,
    OffsetFetchResponse,
    handle,
    long=in_slices(
        Cut("groups.topics.partition_indexes", "groups.topics.partitions"),
        Cut("topics.partition_indexes", "topics.partitions"),
    ),
)
