"""A Produce that is answered once all its records are durable."""

from ottla.broker.api import Pending
from ottla.partition.partition import Partition
from ottla.wire.errors import BrokerError
from ottla.wire.messages.produce import ProduceResponse

Part = ProduceResponse.TopicProduceResponse.PartitionProduceResponse

# Partitions, the offset each has to be durable to, and what to say of it.
Waits = list[tuple[Partition, int, Part]]


class Durable:
    """Waits until all partitions of a produce are durable, each to its own offset."""

    __slots__ = ("_left", "_response", "pending")

    def __init__(self, response: ProduceResponse, waits: Waits, pending: Pending | None = None) -> None:
        self.pending = pending or Pending()
        self._response = response
        self._left = len(waits)
        for partition, end_offset, part in waits:
            self._wait(partition, end_offset, part)

    def _wait(self, partition: Partition, end_offset: int, part: Part) -> None:
        def settled(error: BrokerError | None) -> None:
            if error is not None:
                part.error_code = error.code
                part.error_message = error.message
                part.base_offset = -1
            self._left -= 1
            if not self._left:
                self.pending.resolve(self._response)

        partition.when_durable(end_offset, settled)
