"""Carries dead letters to the broker that leads their partition, where that is another one."""

from collections.abc import Callable

from ottla.channel.peers import Peer
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.produce import ProduceRequest, ProduceResponse

_TIMEOUT_MS = 30_000


def carry(
    peer: Peer,
    topic_id: bytes,
    place: tuple[str, int],
    records: bytes | bytearray,
    written: Callable[[BrokerError | None], None],
) -> None:
    """Have a batch of letters written by the broker that leads their partition."""
    topic = ProduceRequest.TopicProduceData
    data = topic.PartitionProduceData(index=place[1], records=records)
    request = ProduceRequest(
        acks=-1,
        timeout_ms=_TIMEOUT_MS,
        topic_data=[topic(name=place[0], topic_id=topic_id, partition_data=[data])],
    )

    def answered(answer: ProduceResponse | Exception) -> None:
        if isinstance(answer, Exception):
            written(BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, str(answer)))
            return
        parts = [part for topic in answer.responses for part in topic.partition_responses]
        if not parts:
            written(BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "the leader says nothing of it"))
            return
        code = ErrorCode(parts[0].error_code)
        written(None if code is ErrorCode.NONE else BrokerError(code, parts[0].error_message))

    peer.ask(request, ProduceResponse, answered)
