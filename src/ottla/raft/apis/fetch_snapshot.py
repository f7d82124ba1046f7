"""FetchSnapshot: a replica asks for a snapshot, piece by piece, since the log no longer has what it needs.

A follower keeps what has come, and nothing for what is only announced. A leader that announces more than
SNAPSHOT_BYTES_MAX, another size than before, or less than it sends is left alone for a moment, and the download is
given up.
"""

from ottla.raft.event import Request
from ottla.raft.follower import Follower
from ottla.raft.news import address_for, addresses_in, is_for_us, refuse_as_leader, weigh
from ottla.raft.replica import Replica
from ottla.raft.settings import ANSWER_BYTES_MAX, PARTITION, TOPIC
from ottla.raft.snapshot import BOOTSTRAP_ID, Chunk, Download, SnapshotId
from ottla.raft.voters import ReplicaKey
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse

ENDPOINTS_SINCE = 1

_Topic = FetchSnapshotRequest.TopicSnapshot
_Answered = FetchSnapshotResponse.TopicSnapshot


def ask(replica: Replica, download: Download) -> FetchSnapshotRequest:
    """Ask for the next piece."""
    settings, kind = replica.settings, _Topic.PartitionSnapshot
    partition = kind(
        current_leader_epoch=replica.epoch,
        snapshot_id=kind.SnapshotId(end_offset=download.id.offset, epoch=download.id.epoch),
        position=download.position,
        replica_directory_id=settings.directory_id,
    )
    return FetchSnapshotRequest(
        cluster_id=settings.cluster_id,
        replica_id=settings.node_id,
        max_bytes=settings.snapshot_bytes_max,
        topics=[_Topic(name=TOPIC, partitions=[partition])],
    )


def answer(replica: Replica, request: Request, now: int) -> FetchSnapshotResponse:
    """Send a piece of a snapshot."""
    message = request.message
    assert isinstance(message, FetchSnapshotRequest)
    if not is_for_us(replica, message.cluster_id):
        return FetchSnapshotResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    if len(message.topics) != 1 or len(message.topics[0].partitions) != 1:
        return FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST)
    topic = message.topics[0]
    asked = topic.partitions[0]
    told = _Answered.PartitionSnapshot(index=asked.partition)
    if topic.name != TOPIC or asked.partition != PARTITION:
        told.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    else:
        told.current_leader = _Answered.PartitionSnapshot.LeaderIdAndEpoch(
            leader_id=replica.state.leader_id, leader_epoch=replica.epoch
        )
        told.error_code = _fill(replica, message, asked, told, now)
    response = FetchSnapshotResponse(topics=[_Answered(name=topic.name, partitions=[told])])
    address = address_for(replica, request.listener)
    if address is not None and request.version >= ENDPOINTS_SINCE:
        response.node_endpoints = [
            FetchSnapshotResponse.NodeEndpoint(
                node_id=replica.state.leader_id, host=address.host, port=address.port
            )
        ]
    return response


def _fill(
    replica: Replica,
    message: FetchSnapshotRequest,
    asked: _Topic.PartitionSnapshot,
    told: _Answered.PartitionSnapshot,
    now: int,
) -> ErrorCode:
    code = refuse_as_leader(replica, asked.current_leader_epoch)
    if code:
        return code
    id = SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
    size = replica.log.snapshot_size(id) if id != BOOTSTRAP_ID else None
    if size is None:
        return ErrorCode.SNAPSHOT_NOT_FOUND
    if not 0 <= asked.position < size:
        return ErrorCode.POSITION_OUT_OF_RANGE
    if message.max_bytes < 0:
        return ErrorCode.INVALID_REQUEST
    try:
        piece = replica.log.read_snapshot(id, asked.position, min(message.max_bytes, ANSWER_BYTES_MAX))
    except BrokerError as error:
        return error.code
    told.snapshot_id = _Answered.PartitionSnapshot.SnapshotId(end_offset=id.offset, epoch=id.epoch)
    told.size = size
    told.position = asked.position
    told.unaligned_records = piece
    replica.leader.heard_from(ReplicaKey(message.replica_id, asked.replica_directory_id), now)
    return ErrorCode.NONE


def take(replica: Replica, node_id: int, response: FetchSnapshotResponse, now: int) -> bool:
    """Keep the piece that came; False when the node is to be left alone for a moment."""
    if response.error_code or len(response.topics) != 1 or len(response.topics[0].partitions) != 1:
        return False
    told = response.topics[0].partitions[0]
    if response.topics[0].name != TOPIC or told.index != PARTITION:
        return False
    current = told.current_leader
    leader_id, epoch = (current.leader_id, current.leader_epoch) if current is not None else (-1, -1)
    addresses = addresses_in(replica, leader_id, response.node_endpoints)
    outcome = weigh(replica, told.error_code, leader_id, epoch, addresses, now)
    if outcome is not None:
        return outcome
    role = replica.role
    if not isinstance(role, Follower) or role.download is None:
        return False
    download = role.download
    id = SnapshotId(told.snapshot_id.end_offset, told.snapshot_id.epoch)
    if told.error_code in (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE) or (
        told.error_code == ErrorCode.NONE and (id != download.id or told.position != download.position)
    ):
        # The leader has another snapshot by now: a fetch says which.
        role.download = None
    elif told.error_code:
        return False
    else:
        data = bytes(told.unaligned_records)
        if not data:
            return False
        if not download.takes(told.size, len(data)):
            role.download = None
            return False
        download.took(told.size, len(data))
        replica.outbox.keep(Chunk(id, told.position, data, download.is_whole))
    role.heard(now, replica.settings.fetch_timeout_ms)
    return True
