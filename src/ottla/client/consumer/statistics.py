"""What a consumer can tell of itself, in numbers."""

from typing import Any

from ottla.client.consumer.group.classic import ClassicMember
from ottla.client.consumer.parts import Parts


def statistics_of(parts: Parts, *, committed_only: bool) -> dict[str, Any]:
    """Return counts since the start, and gauges as of now."""
    shelf, member = parts.fetcher.shelf, parts.member
    told: dict[str, Any] = {
        "records": shelf.records,
        "fetches": parts.fetcher.fetches,
        "bytes": parts.fetcher.bytes,
        "buffered_bytes": shelf.size_bytes,
        "buffered_batches": len(shelf),
        "commits": 0 if parts.commits is None else parts.commits.count,
        "metadata_version": parts.cluster.version,
        "partitions": {
            str(partition): {
                "position": None if reading.position is None else reading.position.offset,
                "lag": reading.lag(committed_only=committed_only),
                "high_watermark": reading.high_watermark,
                "stage": reading.stage.name.lower(),
                "paused": reading.paused,
            }
            for partition, reading in parts.subscription.readings.items()
        },
    }
    if member is not None:
        is_classic = isinstance(member, ClassicMember)
        told["group"] = {
            "state": (
                member.seat.state if isinstance(member, ClassicMember) else member.membership.state
            ).name.lower(),
            "generation": member.metadata.generation_id,
            "member_id": member.metadata.member_id,
            "rebalances": member.rebalances,
            "heartbeats": member.pulse.heartbeats if isinstance(member, ClassicMember) else member.heartbeats,
            "protocol": "classic" if is_classic else "consumer",
        }
    return told
