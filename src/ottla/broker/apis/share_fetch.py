"""ShareFetch (78): acquire records of share partitions, and acknowledge earlier ones along the way.

v2 brought renewals of locks (KIP-1222), whose requests fetch nothing, and a strict limit of records (KIP-1206).
"""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.share_fetching import ShareFetching
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse

_RENEWALS_SINCE = 2


def handle(
    request: ShareFetchRequest, version: int, connection: Connection, broker: Broker
) -> ShareFetchResponse | Pending:
    """Find the member's session, and let the fetch go its way."""
    share = broker.share
    try:
        key = share.member(request.group_id, request.member_id)
        if version >= _RENEWALS_SINCE and request.is_renew_ack:
            _check_renewal(request)
        session = share.sessions.fetch(
            key,
            request.share_session_epoch,
            [(topic.topic_id, part.partition_index) for topic in request.topics for part in topic.partitions],
            [
                (topic.topic_id, index)
                for topic in request.forgotten_topics_data
                for index in topic.partitions
            ],
            acknowledges=any(
                part.acknowledgement_batches for topic in request.topics for part in topic.partitions
            ),
            connection_id=share.connection_id(connection),
        )
    except BrokerError as error:
        refused = ShareFetchResponse(error_code=error.code, error_message=error.message)
        if error.code is not ErrorCode.SHARE_SESSION_LIMIT_REACHED or request.max_wait_ms <= 0:
            return refused
        # Whoever is one too many would ask again at once.
        pending = Pending()
        broker.call_later(request.max_wait_ms / 1000, lambda: pending.resolve(refused))
        return pending
    return ShareFetching(request, version, session, connection, broker).begin()


def _check_renewal(request: ShareFetchRequest) -> None:
    limits = {
        "maxBytes": request.max_bytes,
        "minBytes": request.min_bytes,
        "maxRecords": request.max_records,
        "maxWaitMs": request.max_wait_ms,
    }
    wrong = [name for name, value in limits.items() if value != 0]
    if wrong:
        message = "".join(f"{name} must be set to 0, " for name in wrong) + "if isRenewAck is true."
        raise BrokerError(ErrorCode.INVALID_REQUEST, message)


API = Api(ShareFetchRequest, ShareFetchResponse, handle)
