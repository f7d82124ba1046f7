"""DescribeShareGroupOffsets (90): where share groups are in their partitions, and how far behind.

A group is described twice at most, however often it is named (`mentions.py`), and a partition once in each description.
"""

from collections.abc import Callable
from typing import Any

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.end_offsets import find_end_offsets
from ottla.broker.mentions import mentions
from ottla.channel.connection import Connection
from ottla.groups.share.describe import AskedOffsets, GroupOffsets, has_lag
from ottla.wire.errors import BrokerError
from ottla.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from ottla.wire.messages.read_share_group_state_summary import ReadShareGroupStateSummaryResponse


def handle(
    request: DescribeShareGroupOffsetsRequest, version: int, connection: Connection, broker: Broker
) -> Pending:
    """Describe every group, and answer once all are."""
    pending = Pending()
    groups_asked = [_each_once(asked) for asked in mentions(request.groups, lambda each: each.group_id)]
    found: dict[int, GroupOffsets] = {}

    def described(at: int) -> Callable[[GroupOffsets], None]:
        def take(group: GroupOffsets) -> None:
            found[at] = group
            finish()

        return take

    def finish() -> None:
        if begun and len(found) == len(groups_asked):
            groups = [found[at] for at in range(len(found))]
            pending.resolve(DescribeShareGroupOffsetsResponse(groups=groups))

    begun = False
    for at, asked in enumerate(groups_asked):
        _describe(broker, asked, described(at))
    begun = True
    finish()
    return pending


def _each_once(asked: AskedOffsets) -> AskedOffsets:
    """Name every topic once, and each of its partitions once."""
    if asked.topics is None:
        return asked
    partitions: dict[str, dict[int, None]] = {}
    for topic in asked.topics:
        partitions.setdefault(topic.topic_name, {}).update(dict.fromkeys(topic.partitions))
    kind = AskedOffsets.DescribeShareGroupOffsetsRequestTopic
    topics = [kind(topic_name=name, partitions=list(indexes)) for name, indexes in partitions.items()]
    return AskedOffsets(group_id=asked.group_id, topics=topics)


def _describe(broker: Broker, asked: AskedOffsets, done: Callable[[GroupOffsets], None]) -> None:
    coordination, share = broker.coordination, broker.share
    index = coordination.index(asked.group_id)

    def refuse(error: BrokerError) -> None:
        done(GroupOffsets(group_id=asked.group_id, error_code=error.code, error_message=error.message))

    def finish(outcome: GroupOffsets | BrokerError) -> None:
        if isinstance(outcome, BrokerError):
            refuse(outcome)
        else:
            done(outcome)

    def summed_up(response: ReadShareGroupStateSummaryResponse) -> None:
        places = [
            (result.topic_id, part.partition)
            for result in response.results
            for part in result.partitions
            if has_lag(part)
        ]
        find_end_offsets(
            broker,
            places,
            lambda ends: coordination.groups.submit(
                index,
                lambda groups, now: groups.share.offsets_described(asked, response, ends),
                finish,
                (asked.group_id,),
            ),
        )

    def wanted(outcome: Any) -> None:
        if isinstance(outcome, BrokerError):
            refuse(outcome)
        else:
            share.states.ask_patiently(outcome, summed_up)

    try:
        share.check()
    except BrokerError as error:
        refuse(error)
        return
    if asked.topics is not None and not asked.topics:
        done(GroupOffsets(group_id=asked.group_id))
        return
    coordination.groups.submit(
        index, lambda groups, now: groups.share.summary_request(asked), wanted, (asked.group_id,)
    )


API = Api(DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse, handle)
