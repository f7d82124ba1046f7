"""Producer ids, handed to brokers in blocks that are never handed out twice."""

from ottla.controller.view import View
from ottla.replicated.decision import Decision
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ottla.wire.records.metadata import ProducerIdsRecord

BLOCK_SIZE = 1000
_ID_MAX = 2**63 - 1


def allocate_producer_ids(
    view: View, request: AllocateProducerIdsRequest
) -> Decision[AllocateProducerIdsResponse]:
    """Give a broker the next block."""
    view.check_epoch(request.broker_id, request.broker_epoch)
    start = max(view.image.next_producer_id, 0)
    if start > _ID_MAX - BLOCK_SIZE:
        raise BrokerError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Exhausted all producerIds as the next block's end producerId has exceeded the int64 type limit",
        )
    record = ProducerIdsRecord(
        broker_id=request.broker_id, broker_epoch=request.broker_epoch, next_producer_id=start + BLOCK_SIZE
    )
    return Decision(
        AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=BLOCK_SIZE), (record,)
    )
