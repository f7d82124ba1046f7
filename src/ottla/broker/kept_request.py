"""The batches of a Produce: one for each partition, and what is kept of them while they wait.

They wait for the word of a coordinator, or for a thread.

R1  Nothing is kept but the batches that may still be stored, as copies: the rest of the frame goes back at once.
R2  What is kept is counted with the requests that are not whole (ADR 0050), until the request is done with.
"""

from collections.abc import Container

from ottla.broker.broker import Broker
from ottla.channel.connection import Connection
from ottla.log.validation import check_client_batch
from ottla.wire.batch import LOG_OVERHEAD
from ottla.wire.errors import BrokerError
from ottla.wire.messages.produce import ProduceRequest

_BY_ID_SINCE = 13
_PARTS_FREE = 100
_PART_BYTES = 512  # of the objects of a partition that is named, beyond the first hundred


class KeptRequest:
    """A request whose frame is the next one's, as far as its bytes are concerned."""

    __slots__ = ("_connection", "_is_copied", "_request", "_size_bytes")

    def __init__(self, request: ProduceRequest, connection: Connection) -> None:
        self._request = request
        self._connection = connection
        self._is_copied = False
        self._size_bytes = 0

    def keep(self, without: Container[int]) -> None:
        """Keep all batches, but those of the parts that have these identities."""
        size_bytes = count = 0
        for topic in self._request.topic_data:
            for part in topic.partition_data:
                count += 1
                records = part.records
                if records is None:
                    continue
                if id(part) in without:
                    part.records = None
                    continue
                if not self._is_copied:
                    part.records = memoryview(bytearray(records))
                size_bytes += len(records)
        self._is_copied = True
        self._count(size_bytes + max(0, count - _PARTS_FREE) * _PART_BYTES)

    def release(self) -> None:
        """The request is done with, as far as its batches go."""
        if self._size_bytes:
            self._count(0)

    def drop(self) -> None:
        """Give up the batches: nobody waits for them."""
        for topic in self._request.topic_data:
            for part in topic.partition_data:
                part.records = None
        self.release()

    def _count(self, size_bytes: int) -> None:
        self._connection.connections.requests.add_queued(size_bytes - self._size_bytes)
        self._size_bytes = size_bytes


def hopeless(request: ProduceRequest, version: int, broker: Broker) -> dict[int, BrokerError]:
    """Return why batches will not be stored whatever a coordinator says, by the identity of their parts.

    The others are cut to what may be stored of them, so that each is within its topic's `max.message.bytes`.
    """
    refused: dict[int, BrokerError] = {}
    table = broker.table
    for topic in request.topic_data:
        for part in topic.partition_data:
            records = part.records
            if records is None:
                continue
            try:
                if version >= _BY_ID_SINCE:
                    partition = table.by_id(topic.topic_id, part.index)
                else:
                    partition = table.by_name(topic.name, part.index)
                if partition.refusal is not None:
                    raise BrokerError(partition.refusal.code, partition.refusal.message)
                config = partition.log.config
                if len(records) > config.max_message_bytes:
                    header = check_client_batch(records, config)
                    part.records = records[: header[1] + LOG_OVERHEAD]
            except BrokerError as error:
                refused[id(part)] = error.with_traceback(None)  # which would keep the frame
    return refused


def once_each(request: ProduceRequest, version: int) -> None:
    """Leave of each partition the batch that was named last, as Kafka does: one partition takes one batch a request."""
    topics = request.topic_data
    if len(topics) == 1 and len(topics[0].partition_data) == 1:
        return
    is_by_id = version >= _BY_ID_SINCE
    last: dict[tuple[str | bytes, int], int] = {}
    count = 0
    for topic in topics:
        name = topic.topic_id if is_by_id else topic.name
        count += len(topic.partition_data)
        for part in topic.partition_data:
            last[name, part.index] = id(part)
    if len(last) == count:
        return
    kept = set(last.values())
    for topic in topics:
        topic.partition_data = [part for part in topic.partition_data if id(part) in kept]
    request.topic_data = [topic for topic in topics if topic.partition_data]
