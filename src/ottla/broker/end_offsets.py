"""Where partitions end, on whichever brokers lead them: up to where consumers can read."""

from collections.abc import Callable, Iterable
from typing import Any

from ottla.broker.broker import Broker
from ottla.channel.peers import Peer
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

Place = tuple[bytes, int]  # topic id, partition
EndOffset = int | BrokerError

_CONSUMER = -1
_LATEST = -1


def find_end_offsets(
    broker: Broker, places: Iterable[Place], done: Callable[[dict[Place, EndOffset]], None]
) -> None:
    """Ask the leaders; `done` gets an offset, or the reason why there is none, for each place."""
    found: dict[Place, EndOffset] = {}
    elsewhere: dict[Peer, dict[tuple[str, int], Place]] = {}
    for place in places:
        topic = broker.image.topics.by_id.get(place[0])
        peer = None if topic is None else broker.other_leader(topic.name, place[1])
        if peer is not None and topic is not None:
            elsewhere.setdefault(peer, {})[topic.name, place[1]] = place
            continue
        try:
            partition = broker.table.by_id(*place)
            partition.check_leader(-1)
            found[place] = partition.high_watermark
        except BrokerError as error:
            found[place] = error
    left = len(elsewhere)
    if not left:
        done(found)
        return

    def take(more: dict[Place, EndOffset]) -> None:
        nonlocal left
        found.update(more)
        left -= 1
        if not left:
            done(found)

    for peer, wanted in elsewhere.items():
        _ask(peer, wanted, take)


def _ask(
    peer: Peer, wanted: dict[tuple[str, int], Place], take: Callable[[dict[Place, EndOffset]], None]
) -> None:
    topic = ListOffsetsRequest.ListOffsetsTopic
    names: dict[str, list[Any]] = {}
    for name, index in wanted:
        names.setdefault(name, []).append(
            topic.ListOffsetsPartition(partition_index=index, current_leader_epoch=-1, timestamp=_LATEST)
        )
    request = ListOffsetsRequest(
        replica_id=_CONSUMER, topics=[topic(name=name, partitions=parts) for name, parts in names.items()]
    )

    def answered(answer: ListOffsetsResponse | Exception) -> None:
        lost = BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the leader did not answer")
        said: dict[Place, EndOffset] = dict.fromkeys(wanted.values(), lost)
        if not isinstance(answer, Exception):
            for each in answer.topics:
                for part in each.partitions:
                    place = wanted.get((each.name, part.partition_index))
                    code = ErrorCode(part.error_code)
                    if place is not None:
                        said[place] = part.offset if code is ErrorCode.NONE else BrokerError(code)
        take(said)

    peer.ask(request, ListOffsetsResponse, answered)
