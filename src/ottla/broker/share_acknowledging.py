"""What a request says of records that were handed out, by partition, until all of it is durable or refused."""

from collections.abc import Callable, Iterable
from typing import Any

from ottla.broker.broker import Broker
from ottla.broker.share_traffic import Asked
from ottla.share.acknowledgement import check
from ottla.share.key import ShareKey
from ottla.share.session import SessionKey
from ottla.wire.errors import BrokerError, ErrorCode

Place = tuple[bytes, int]  # topic id, partition
Outcomes = dict[Place, BrokerError | None]


def acknowledge(
    broker: Broker,
    member: SessionKey,
    topics: Iterable[Any],
    *,
    may_renew: bool,
    done: Callable[[Outcomes], None],
) -> None:
    """Take the acknowledgements of ShareFetch or ShareAcknowledge; `done` hears what became of each partition's."""
    outcomes: Outcomes = {}
    silent: list[Place] = []
    taken: list[tuple[Place, Any]] = []
    for topic in topics:
        for part in topic.partitions:
            place = (topic.topic_id, part.partition_index)
            error = _refusal(broker, place, part.acknowledgement_batches, may_renew=may_renew)
            if error is not None:
                outcomes[place] = error
            elif part.acknowledgement_batches:
                taken.append((place, part.acknowledgement_batches))
            else:
                silent.append(place)
    if taken:
        # As in Kafka, partitions of which nothing is said are named along with those of which something is.
        outcomes.update(dict.fromkeys(silent))
    traffic = broker.share.partitions.traffic
    traffic.count(Asked.ACKNOWLEDGEMENTS, {place[0] for place, _ in taken})
    left = 1 + len(taken)

    def one_less() -> None:
        nonlocal left
        left -= 1
        if not left:
            failed = {place[0] for place, error in outcomes.items() if error is not None}
            traffic.count(Asked.ACKNOWLEDGEMENT_FAILURES, failed & broker.image.topics.by_id.keys())
            done(outcomes)

    def settled(place: Place, batches: Any) -> Callable[[BrokerError | None], None]:
        def settle(error: BrokerError | None) -> None:
            outcomes[place] = error
            if error is None:
                traffic.acknowledged(batches)
            one_less()

        return settle

    for place, batches in taken:
        key = ShareKey(member.group_id, *place)
        broker.share.partitions.acknowledge(key, member.member_id, batches, settled(place, batches))
    one_less()


def unknown(broker: Broker, place: Place) -> BrokerError | None:
    """Say why there is no such partition, if there is none."""
    topic = broker.image.topics.by_id.get(place[0])
    if topic is None:
        return BrokerError(ErrorCode.UNKNOWN_TOPIC_ID)
    if place[1] not in topic.partitions:
        return BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return None


def _refusal(broker: Broker, place: Place, batches: Iterable[Any], *, may_renew: bool) -> BrokerError | None:
    topic_error = unknown(broker, place)
    if topic_error is not None and topic_error.code is ErrorCode.UNKNOWN_TOPIC_ID:
        return topic_error
    try:
        check(batches, may_renew=may_renew)
    except BrokerError as error:
        return BrokerError(error.code, error.message)
    return topic_error
