"""Where share consumers are sent whose partition is led by another broker, or under another epoch (KIP-951)."""

from typing import Any

from ottla.broker.broker import Broker
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.share_acknowledge import ShareAcknowledgeResponse
from ottla.wire.messages.share_fetch import ShareFetchResponse

_MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
_UNKNOWN = -1, -1


def name_leaders(
    response: ShareFetchResponse | ShareAcknowledgeResponse, broker: Broker, listener: str
) -> None:
    """Add to an answer who leads the partitions that have moved, and where those brokers are reached on a listener."""
    leaders: set[int] = set()
    for topic in response.responses:
        known = broker.image.topics.by_id.get(topic.topic_id)
        for part in topic.partitions:
            if part.error_code in _MOVED:
                state = None if known is None else known.partitions.get(part.partition_index)
                leader = _UNKNOWN if state is None else (state.leader, state.leader_epoch)
                part.current_leader.leader_id, part.current_leader.leader_epoch = leader
                leaders.add(leader[0])
    if leaders:
        endpoint: Any = type(response).NodeEndpoint
        response.node_endpoints = [
            endpoint(node_id=node_id, host=host, port=port, rack=rack)
            for node_id, host, port, rack in broker.endpoints(listener)
            if node_id in leaders
        ]
