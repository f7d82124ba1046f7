"""Which replica a consumer is sent to: one in its own rack, where there is one (KIP-392).

S1  Only who is in sync and has the offset that is asked for is chosen, and only who can be reached on that listener.
S2  A leader in the consumer's rack serves it itself. Among others the one that has most is chosen, then the one
    that was level last.
"""

from typing import TYPE_CHECKING

from ottla.metadata.settings.broker.replication import RACK_AWARE_SELECTOR as RACK_AWARE

__all__ = ["NOBODY", "RACK_AWARE", "preferred_replica"]

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.partition.partition import Partition

NOBODY = -1


def preferred_replica(broker: "Broker", partition: "Partition", offset: int, rack: str, listener: str) -> int:
    """Return the broker that should be asked instead of us, NOBODY when we are as good as any."""
    leadership = partition.leadership
    if leadership is None or not rack:
        return NOBODY
    brokers = broker.image.brokers
    own = brokers.get(broker.node_id)
    if own is not None and own.rack == rack:
        return NOBODY
    chosen, best = NOBODY, (-1, 0, 0)
    for id, follower in leadership.followers.items():
        known = brokers.get(id)
        if (
            known is None
            or known.rack != rack
            or known.fenced
            or listener not in known.listeners
            or id not in leadership.isr
            or not follower.start_offset <= offset <= follower.end_offset
        ):
            continue
        merit = (follower.end_offset, follower.caught_up_ms, id)
        if merit > best:
            chosen, best = id, merit
    return chosen
