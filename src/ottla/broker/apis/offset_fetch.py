"""OffsetFetch (9): how far groups have come; v8 asks for several at once, v10 names topics by id.

Who asks for all that a group knows, without a name, may be told much: that is served in steps like a long request, for
which the offsets are named first. One that is removed meanwhile is answered as if there had never been one.
"""

import copy
from collections.abc import Generator, Hashable
from typing import Any

from ottla.broker.api import Api, Handler, Pending
from ottla.broker.broker import Broker
from ottla.broker.long_answers import coordinated, in_steps_if_long
from ottla.broker.mentions import mentions
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.groups.machine import Groups
from ottla.groups.offset_fetch import Asked, AskedTopic, Found, asked_groups, fetch_response, refused_fetch
from ottla.replicated.decision import Decision
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

_BATCH_SINCE = 8
_NAMED_A_TURN = 20_000  # offsets, by lists of numbers that are there already


_in_slices = in_slices(
    Cut("groups.topics.partition_indexes", "groups.topics.partitions"),
    Cut("topics.partition_indexes", "topics.partitions"),
)
_Topic = OffsetFetchRequest.OffsetFetchRequestTopic


def handle(
    request: OffsetFetchRequest, version: int, connection: Connection, broker: Broker
) -> Message | Pending:
    """Answer at once, or in steps if there is much to tell."""
    wholes = [each.group_id for each in asked_groups(request, version) if each.topics is None]
    costs = (
        machine.offsets.count(name) for name, machine in coordinated(broker, wholes) if machine is not None
    )
    return in_steps_if_long(
        request, costs, connection, broker, lambda: _answer(request, version, connection, broker)
    )


def _answer(request: OffsetFetchRequest, version: int, connection: Connection, broker: Broker) -> Pending:
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


def _in_steps(
    handle: Handler, request: OffsetFetchRequest, version: int, connection: Connection, broker: Broker
) -> Generator[None, None, Any]:
    named = copy.copy(request)
    groups: list[Asked] = []
    cost = 0
    for asked in mentions(asked_groups(request, version), _whole):
        group = asked
        if asked.topics is None:
            group = copy.copy(asked)
            group.topics = _named(broker, asked.group_id, version)
            cost += 1 + sum(len(each.partition_indexes) for each in group.topics or ())
        groups.append(group)
        if cost > _NAMED_A_TURN:
            yield
            cost = 0
    if version >= _BATCH_SINCE:
        named.groups = groups
    elif named.topics is None and groups[0].topics:
        topics = groups[0].topics
        named.topics = [_Topic(name=each.name, partition_indexes=each.partition_indexes) for each in topics]
    return (yield from _in_slices(_answer, named, version, connection, broker))


def _named(broker: Broker, group_id: str, version: int) -> list[AskedTopic] | None:
    """Return what a group has offsets for; None if nothing is known of any."""
    ((_, machine),) = coordinated(broker, [group_id])
    if machine is None or not machine.offsets.count(group_id):
        return None
    return machine.offsets.asked_topics(group_id, version)


API = Api(OffsetFetchRequest, OffsetFetchResponse, handle, long=_in_steps)
