"""Finding the replica that this broker has of a partition, and saying why when it has none."""

from ottla.broker.broker import Broker
from ottla.partition.partition import Partition
from ottla.wire.errors import BrokerError, ErrorCode


def local_replica(broker: Broker, topic: str, index: int) -> Partition:
    """Return a partition that works here; a partition of somebody else's is not led here, any other is unknown."""
    try:
        partition = broker.table.by_name(topic, index)
    except BrokerError as error:
        if (
            error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            and broker.image.partition(topic, index) is not None
        ):
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER) from None
        raise
    if partition.error is not None:
        raise partition.error
    return partition
