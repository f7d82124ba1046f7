"""What a fetch of the metadata log is answered with."""

from ottla.raft.event import Request
from ottla.raft.log_view import Buffer
from ottla.raft.news import address_for
from ottla.raft.outline import End, Fit
from ottla.raft.replica import Replica
from ottla.raft.settings import TOPIC
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.fetch import FetchResponse
from ottla.wire.uuid import METADATA_TOPIC_ID

ENDPOINTS_SINCE = 17

_Topic = FetchResponse.FetchableTopicResponse
_Partition = _Topic.PartitionData


def reply_with_records(replica: Replica, request: Request, offset: int, size_bytes_max: int) -> FetchResponse:
    """Answer with the records from an offset on, or with why they cannot be read."""
    try:
        records = replica.read(offset, size_bytes_max)
    except BrokerError as error:
        return reply(replica, request, error.code)
    return reply(replica, request, ErrorCode.NONE, replica.leader.high_watermark, records)


def reply(
    replica: Replica,
    request: Request,
    code: ErrorCode,
    high_watermark: int = -1,
    records: Buffer = b"",
    fit: Fit = Fit.VALID,
    end: End | None = None,
) -> FetchResponse:
    """Answer with records, or with what stands against them."""
    state = replica.state
    partition = _Partition(
        error_code=code,
        high_watermark=high_watermark,
        log_start_offset=replica.outline.start_offset,
        current_leader=_Partition.LeaderIdAndEpoch(leader_id=state.leader_id, leader_epoch=state.epoch),
        aborted_transactions=None,
        records=records,
    )
    if end is not None and fit is Fit.DIVERGING:
        partition.diverging_epoch = _Partition.EpochEndOffset(epoch=end.epoch, end_offset=end.offset)
    elif end is not None and fit is Fit.SNAPSHOT:
        partition.snapshot_id = _Partition.SnapshotId(epoch=end.epoch, end_offset=end.offset)
    response = FetchResponse(
        responses=[_Topic(topic=TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])]
    )
    address = address_for(replica, request.listener)
    if address is not None and request.version >= ENDPOINTS_SINCE:
        response.node_endpoints = [
            FetchResponse.NodeEndpoint(node_id=state.leader_id, host=address.host, port=address.port)
        ]
    return response
