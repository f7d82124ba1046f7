"""The five questions about the state of share partitions: what each is made of, taken apart and put together."""

from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.replicated.decision import Decision
from ottla.share.key import ShareKey
from ottla.share.state import ShareState
from ottla.wire.message import Message
from ottla.wire.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)
from ottla.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from ottla.wire.messages.read_share_group_state import ReadShareGroupStateRequest, ReadShareGroupStateResponse
from ottla.wire.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from ottla.wire.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)

# What a machine is asked about one share partition: (machine, group id, topic id, the wish, now).
Ask = Callable[[ShareState, str, bytes, Any, int], Decision[Any]]


class Kind(NamedTuple):
    """A request about share partitions: its topics, its answer, the answer's parts, and the command."""

    topic: Callable[..., Any]
    response: type[Any]
    result: Callable[..., Any]
    part: Callable[..., Any]
    ask: Ask


ASKED: dict[type[Message], Kind] = {
    InitializeShareGroupStateRequest: Kind(
        InitializeShareGroupStateRequest.InitializeStateData,
        InitializeShareGroupStateResponse,
        InitializeShareGroupStateResponse.InitializeStateResult,
        InitializeShareGroupStateResponse.InitializeStateResult.PartitionResult,
        lambda machine, group, topic, wish, now: machine.initialize(group, topic, wish, now),
    ),
    ReadShareGroupStateRequest: Kind(
        ReadShareGroupStateRequest.ReadStateData,
        ReadShareGroupStateResponse,
        ReadShareGroupStateResponse.ReadStateResult,
        ReadShareGroupStateResponse.ReadStateResult.PartitionResult,
        lambda machine, group, topic, wish, now: machine.read(
            group, topic, wish.partition, wish.leader_epoch, now
        ),
    ),
    WriteShareGroupStateRequest: Kind(
        WriteShareGroupStateRequest.WriteStateData,
        WriteShareGroupStateResponse,
        WriteShareGroupStateResponse.WriteStateResult,
        WriteShareGroupStateResponse.WriteStateResult.PartitionResult,
        lambda machine, group, topic, wish, now: machine.write(group, topic, wish, now),
    ),
    DeleteShareGroupStateRequest: Kind(
        DeleteShareGroupStateRequest.DeleteStateData,
        DeleteShareGroupStateResponse,
        DeleteShareGroupStateResponse.DeleteStateResult,
        DeleteShareGroupStateResponse.DeleteStateResult.PartitionResult,
        lambda machine, group, topic, wish, now: machine.delete(group, topic, wish.partition),
    ),
    ReadShareGroupStateSummaryRequest: Kind(
        ReadShareGroupStateSummaryRequest.ReadStateSummaryData,
        ReadShareGroupStateSummaryResponse,
        ReadShareGroupStateSummaryResponse.ReadStateSummaryResult,
        ReadShareGroupStateSummaryResponse.ReadStateSummaryResult.PartitionResult,
        lambda machine, group, topic, wish, now: machine.summarize(group, topic, wish.partition),
    ),
}


def ask_each(
    request: Any, one: Callable[[ShareKey, Any, Callable[[Any], None]], None], done: Callable[[Any], None]
) -> None:
    """Take a request apart, ask about each share partition by `one`, and put the answers together."""
    kind = ASKED[type(request)]
    topics = request.topics if request.group_id else []
    found: dict[tuple[int, int], Any] = {}
    left = 1 + sum(len(topic.partitions) for topic in topics)

    def one_less() -> None:
        nonlocal left
        left -= 1
        if not left:
            results = [
                kind.result(
                    topic_id=topic.topic_id,
                    partitions=[found[number, at] for at in range(len(topic.partitions))],
                )
                for number, topic in enumerate(topics)
            ]
            done(kind.response(results=results))

    def answered(number: int, at: int) -> Callable[[Any], None]:
        def take(part: Any) -> None:
            found[number, at] = part
            one_less()

        return take

    for number, topic in enumerate(topics):
        for at, wish in enumerate(topic.partitions):
            one(ShareKey(request.group_id, topic.topic_id, wish.partition), wish, answered(number, at))
    one_less()


def ask_one(asked: type[Message], key: ShareKey, wish: Any) -> Message:
    """Make the request about one share partition."""
    made: Any = asked
    topic = ASKED[asked].topic(topic_id=key.topic_id, partitions=[wish])
    whole: Message = made(group_id=key.group_id, topics=[topic])
    return whole
