"""The statistics of a consumer."""

from typing import Any

from ottla.client.consumer.group.classic_member import ClassicMember
from ottla.client.consumer.parts import ConsumerParts


def statistics_of(parts: ConsumerParts, *, committed_only: bool) -> dict[str, Any]:
    """Return counts since the start, and gauges as of now."""
    buffer, member = parts.fetcher.buffer, parts.member
    statistics: dict[str, Any] = {
        "records": buffer.records,
        "fetches": parts.fetcher.fetches,
        "bytes": parts.fetcher.bytes,
        "buffered_bytes": buffer.size_bytes,
        "buffered_batches": len(buffer),
        "commits": 0 if parts.commits is None else parts.commits.count,
        "metadata_version": parts.cluster.version,
        "partitions": {
            str(partition): {
                "position": None if assigned.position is None else assigned.position.offset,
                "lag": assigned.lag(committed_only=committed_only),
                "high_watermark": assigned.high_watermark,
                "stage": assigned.fetch_state.name.lower(),
                "paused": assigned.paused,
            }
            for partition, assigned in parts.subscription.assignment.items()
        },
    }
    if member is not None:
        is_classic = isinstance(member, ClassicMember)
        statistics["group"] = {
            "state": member.membership.state.name.lower(),
            "generation": member.metadata.generation_id,
            "member_id": member.metadata.member_id,
            "rebalances": member.rebalances,
            "heartbeats": member.heartbeat_loop.heartbeats
            if isinstance(member, ClassicMember)
            else member.heartbeats,
            "protocol": "classic" if is_classic else "consumer",
        }
    return statistics
