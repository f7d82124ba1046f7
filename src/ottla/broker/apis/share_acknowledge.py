"""ShareAcknowledge (79): say what became of records that were acquired: accepted, released, rejected, kept longer."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.share_acknowledging import Outcomes, acknowledge
from ottla.broker.share_leaders import name_leaders
from ottla.channel.connection import Connection
from ottla.share.session import FINAL_EPOCH
from ottla.wire.errors import BrokerError
from ottla.wire.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse

Topic = ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse
Part = Topic.PartitionData

_RENEWALS_SINCE = 2


def handle(
    request: ShareAcknowledgeRequest, version: int, connection: Connection, broker: Broker
) -> ShareAcknowledgeResponse | Pending:
    """Take all of it, and answer once it is durable."""
    share = broker.share
    try:
        key = share.member(request.group_id, request.member_id)
        share.sessions.acknowledge(key, request.share_session_epoch)
    except BrokerError as error:
        return ShareAcknowledgeResponse(error_code=error.code, error_message=error.message)
    pending = Pending()

    def done(outcomes: Outcomes) -> None:
        if request.share_session_epoch == FINAL_EPOCH:
            share.close(key)
        lock_ms = broker.coordination.config(key.group_id, "share.record.lock.duration.ms")
        response = ShareAcknowledgeResponse(
            acquisition_lock_timeout_ms=lock_ms, responses=_responses(outcomes)
        )
        name_leaders(response, broker, connection.listener)
        pending.resolve(response)

    may_renew = version >= _RENEWALS_SINCE and request.is_renew_ack
    acknowledge(broker, key, request.topics, may_renew=may_renew, done=done)
    return pending


def _responses(outcomes: Outcomes) -> list[Topic]:
    topics: dict[bytes, Topic] = {}
    for (topic_id, index), error in outcomes.items():
        part = Part(partition_index=index)
        if error is not None:
            part.error_code, part.error_message = error.code, error.message
        topics.setdefault(topic_id, Topic(topic_id=topic_id)).partitions.append(part)
    return list(topics.values())


API = Api(ShareAcknowledgeRequest, ShareAcknowledgeResponse, handle)
