"""The AddOffsetsToTxn API, key 25."""

from ottla.wire.message import Message
from ottla.wire.primitive import Int16, Int32, Int64, String


class AddOffsetsToTxnRequest(Message, api=25, versions="0-4", flexible="3+"):
    """Enlist a group's offsets in a transaction."""

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    group_id: String


class AddOffsetsToTxnResponse(Message, api=25, versions="0-4", flexible="3+"):
    """Whether the group is part of the transaction now."""

    throttle_time_ms: Int32
    error_code: Int16
