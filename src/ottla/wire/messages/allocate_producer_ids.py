"""The AllocateProducerIds API, key 67."""

from ottla.wire.message import Message
from ottla.wire.primitive import Int16, Int32, Int64


class AllocateProducerIdsRequest(Message, api=67, versions="0", flexible="0+"):
    """A broker asks the controller for a block of producer ids."""

    broker_id: Int32
    broker_epoch: Int64 = -1


class AllocateProducerIdsResponse(Message, api=67, versions="0", flexible="0+"):
    """The block of producer ids granted."""

    throttle_time_ms: Int32
    error_code: Int16
    producer_id_start: Int64
    producer_id_len: Int32
