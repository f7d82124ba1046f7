"""The InitProducerId API, key 22."""

from ottla.wire.field import since
from ottla.wire.message import Message
from ottla.wire.primitive import Bool, Int16, Int32, Int64, NullableString


class InitProducerIdRequest(Message, api=22, versions="0-6", flexible="2+"):
    """Obtain a producer id and epoch, fencing earlier users of a transactional id."""

    transactional_id: NullableString
    transaction_timeout_ms: Int32
    producer_id: Int64 = since(3, default=-1)
    producer_epoch: Int16 = since(3, default=-1)
    enable2_pc: Bool = since(6)
    keep_prepared_txn: Bool = since(6)


class InitProducerIdResponse(Message, api=22, versions="0-6", flexible="2+"):
    """The producer id and epoch granted."""

    throttle_time_ms: Int32
    error_code: Int16
    producer_id: Int64 = -1
    producer_epoch: Int16
    ongoing_txn_producer_id: Int64 = since(6, default=-1)
    ongoing_txn_producer_epoch: Int16 = since(6, default=-1)
