"""Who leads the partitions of a Fetch instead of us (KIP-951), told along with the errors."""

from ottla.broker.broker import Broker
from ottla.broker.fetch_session import Wanted
from ottla.broker.leader_hint import TOLD_WITH, hint
from ottla.wire.messages.fetch import FetchResponse

Part = FetchResponse.FetchableTopicResponse.PartitionData


def tell_leaders(
    broker: Broker, parts: list[tuple[Wanted, Part]], response: FetchResponse, listener: str
) -> None:
    """Say who leads what is not ours, and where these are reached from the listener that the client came by."""
    leaders = {}
    for wanted, part in parts:
        if part.error_code in TOLD_WITH:
            told = hint(broker, *wanted.key, listener)
            if told is not None:
                part.current_leader = Part.LeaderIdAndEpoch(
                    leader_id=told.leader_id, leader_epoch=told.leader_epoch
                )
                leaders[told.leader_id] = told
    response.node_endpoints = [
        FetchResponse.NodeEndpoint(node_id=each.leader_id, host=each.host, port=each.port, rack=each.rack)
        for each in leaders.values()
    ]
