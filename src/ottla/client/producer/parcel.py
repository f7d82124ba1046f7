"""A produce request with the batches it carries."""

from typing import NamedTuple

from ottla.client.cluster import NO_TOPIC_ID, Cluster
from ottla.client.producer.batch import Batch
from ottla.client.producer.courier import Courier
from ottla.client.producer.terms import Terms
from ottla.client.producer.transaction import Transaction
from ottla.wire.messages.produce import ProduceRequest

_BY_ID_SINCE = 13
# The newest version whose broker does not see to a transaction's members by itself.
_NEWEST_BEFORE_V2 = 11
_make_topic = ProduceRequest.TopicProduceData.maker()
_make_partition = ProduceRequest.TopicProduceData.PartitionProduceData.maker()
_make_request = ProduceRequest.maker()


class Parcel(NamedTuple):
    """A request and its batches, also by topic, in whichever way the version names it, and partition."""

    request: ProduceRequest
    version: int
    batches: list[Batch]
    by_place: dict[tuple[str | bytes, int], Batch]
    at: float


def pack(
    batches: list[Batch],
    cluster: Cluster,
    courier: Courier,
    terms: Terms,
    transaction: Transaction | None,
    now: float,
) -> Parcel:
    """Return the request that takes the batches to a connected broker; Unsupported when it serves none that could."""
    by_topic: dict[str, list[Batch]] = {}
    for batch in batches:
        some = by_topic.get(batch.lane.topic)
        if some is None:
            by_topic[batch.lane.topic] = [batch]
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
    version = courier.version(cluster.links, newest)
    by_id = version >= _BY_ID_SINCE
    request = _make_request(
        transactional_id=None if transaction is None else transaction.name,
        acks=terms.acks,
        timeout_ms=terms.request_timeout_ms,
        topic_data=[
            _make_topic(
                name=name,
                topic_id=ids[name],
                partition_data=[
                    _make_partition(index=batch.lane.partition, records=batch.buffer) for batch in some
                ],
            )
            for name, some in by_topic.items()
        ],
    )
    by_place: dict[tuple[str | bytes, int], Batch] = {
        (ids[batch.lane.topic] if by_id else batch.lane.topic, batch.lane.partition): batch
        for batch in batches
    }
    return Parcel(request, version, batches, by_place, now)
