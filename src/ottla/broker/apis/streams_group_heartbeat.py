"""StreamsGroupHeartbeat (88): join, stay in, and leave a streams group (KIP-1071).

The topics that a topology needs for itself are made on the way. A member is told what hinders its group, which may be
that such a topic can not be made.
"""

from collections.abc import Iterable, Mapping

from ottla.broker.api import Api, Pending
from ottla.broker.apis.metadata import INTERNAL_TOPICS
from ottla.broker.broker import Broker
from ottla.broker.coordination import client_of
from ottla.broker.heartbeats import LONG_BYTES, NAME_COST
from ottla.broker.slicing import undivided
from ottla.channel.connection import Connection
from ottla.controller.names import invalid_name
from ottla.groups.group import Kind
from ottla.groups.streams.heartbeat import Heard
from ottla.groups.streams.request import check_topology
from ottla.groups.streams.statuses import StatusCode
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

_SHOWN_MAX = 3
# For how many heartbeats a topic that could not be made is not tried again.
_PATIENCE = 2


def handle(
    request: StreamsGroupHeartbeatRequest, version: int, connection: Connection, broker: Broker
) -> StreamsGroupHeartbeatResponse | Pending:
    """Hand the request to the group's coordinator, and see to the topics that are missing."""
    client = client_of(connection)
    coordination = broker.coordination

    def finish(outcome: Heard | BrokerError) -> StreamsGroupHeartbeatResponse:
        if isinstance(outcome, BrokerError):
            return StreamsGroupHeartbeatResponse(error_code=outcome.code, error_message=outcome.message)
        response, missing = outcome
        if missing:
            patience_ms = _PATIENCE * coordination.config(request.group_id, "streams.heartbeat.interval.ms")
            _explain(response, coordination.streams_topics.make(missing, patience_ms))
        return response

    try:
        coordination.check(Kind.STREAMS)
        connection.connections.turn_cost += NAME_COST * len(check_topology(request))
        _check_names(request)
    except BrokerError as error:
        return finish(error)
    return coordination.group(
        request.group_id, lambda groups, now: groups.streams.heartbeat(request, client, now), finish
    )


def _check_names(request: StreamsGroupHeartbeatRequest) -> None:
    """Raise STREAMS_INVALID_TOPOLOGY for topics that no application may have."""
    names = dict.fromkeys(_names(request))
    prohibited = [name for name in names if name in INTERNAL_TOPICS]
    if prohibited:
        message = (
            f"Use of Kafka internal topics {','.join(prohibited)} in a Kafka Streams topology is prohibited."
        )
        raise BrokerError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
    invalid = [name for name in names if invalid_name(name)]
    if invalid:
        message = f"Topic names {','.join(invalid)} are not valid topic names."
        raise BrokerError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def _names(request: StreamsGroupHeartbeatRequest) -> Iterable[str]:
    if request.topology is not None:
        for each in request.topology.subtopologies:
            yield from each.source_topics
            yield from each.repartition_sink_topics
            yield from (topic.name for topic in each.repartition_source_topics)
            yield from (topic.name for topic in each.state_changelog_topics)


def _explain(response: StreamsGroupHeartbeatResponse, failures: Mapping[str, str]) -> None:
    """Add to the status of missing topics why some of them can not be made."""
    if not failures:
        return
    listed = ", ".join(f"{name} ({reason})" for name, reason in [*failures.items()][:_SHOWN_MAX])
    more = len(failures) - _SHOWN_MAX
    words = f"{listed} and {more} more" if more > 0 else listed
    for status in response.status or ():
        if status.status_code == StatusCode.MISSING_INTERNAL_TOPICS:
            status.status_detail += f"; Creation failed: {words}."


API = Api(
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    handle,
    long=undivided,
    long_bytes=LONG_BYTES,
)
