"""The EndTxn API, key 26."""

from ottla.wire.field import since
from ottla.wire.message import Message
from ottla.wire.primitive import Bool, Int16, Int32, Int64, String


class EndTxnRequest(Message, api=26, versions="0-5", flexible="3+"):
    """Commit or abort a transaction."""

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    committed: Bool


class EndTxnResponse(Message, api=26, versions="0-5", flexible="3+"):
    """Whether the transaction ended; v5 hands out the producer's next epoch."""

    throttle_time_ms: Int32
    error_code: Int16
    producer_id: Int64 = since(5, default=-1, ignorable=True)
    producer_epoch: Int16 = since(5, default=-1, ignorable=True)
