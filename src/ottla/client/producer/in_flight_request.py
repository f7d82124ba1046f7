"""A produce request in flight, with its batches."""

from typing import NamedTuple

from ottla.client.cluster import NO_TOPIC_ID, Cluster
from ottla.client.producer.batch import ProducerBatch
from ottla.client.producer.config import ProducerConfig
from ottla.client.producer.destination_broker import DestinationBroker
from ottla.client.producer.transaction import ProducerTransaction
from ottla.wire.messages.produce import ProduceRequest

_BY_ID_SINCE = 13
# The newest version in which the broker does not add partitions to a transaction by itself.
_NEWEST_BEFORE_V2 = 11
_make_topic = ProduceRequest.TopicProduceData.maker()
_make_partition = ProduceRequest.TopicProduceData.PartitionProduceData.maker()
_make_request = ProduceRequest.maker()


class InFlightRequest(NamedTuple):
    """A request and its batches. `by_partition` has topic ids or topic names, as the version of the request has."""

    request: ProduceRequest
    version: int
    batches: list[ProducerBatch]
    by_partition: dict[tuple[str | bytes, int], ProducerBatch]
    sent_at: float


def build_request(
    batches: list[ProducerBatch],
    cluster: Cluster,
    broker: DestinationBroker,
    config: ProducerConfig,
    transaction: ProducerTransaction | None,
    now: float,
) -> InFlightRequest:
    """Return the request with these batches for a connected broker. Raises Unsupported if it serves no version."""
    by_topic: dict[str, list[ProducerBatch]] = {}
    for batch in batches:
        some = by_topic.get(batch.queue.topic)
        if some is None:
            by_topic[batch.queue.topic] = [batch]
        else:
            some.append(batch)
    ids: dict[str, bytes] = {}
    for name in by_topic:
        topic = cluster.topics.get(name)
        ids[name] = NO_TOPIC_ID if topic is None else topic.id
        if topic is not None:
            topic.used_at = now
    newest = _BY_ID_SINCE - 1 if NO_TOPIC_ID in ids.values() else None
    if transaction is not None and not transaction.is_v2:
        newest = _NEWEST_BEFORE_V2
    version = broker.version(cluster.connections, newest)
    by_id = version >= _BY_ID_SINCE
    request = _make_request(
        transactional_id=None if transaction is None else transaction.transactional_id,
        acks=config.acks,
        timeout_ms=config.request_timeout_ms,
        topic_data=[
            _make_topic(
                name=name,
                topic_id=ids[name],
                partition_data=[
                    _make_partition(index=batch.queue.partition, records=batch.buffer) for batch in some
                ],
            )
            for name, some in by_topic.items()
        ],
    )
    by_partition: dict[tuple[str | bytes, int], ProducerBatch] = {
        (ids[batch.queue.topic] if by_id else batch.queue.topic, batch.queue.partition): batch
        for batch in batches
    }
    return InFlightRequest(request, version, batches, by_partition, now)
