"""Fetch: a replica asks for what comes behind its log, and says thereby that it has all before.

F1  The leader sends records only where the end of the follower's log is a part of its own: same offset, same epoch.
    Else it says where the two part, and the follower cuts its log there, epoch by epoch, until they meet.
F2  A follower takes records only from the leader of its epoch, and none that is of a higher one.
    Nor does it take what it could not read back, cut what is committed, or go back to a snapshot it is past: whoever
    answers so is left alone for a moment, and not counted as a leader that is there.
F3  It puts them on disk before it fetches again (R4).
"""

from ottla.raft.apis.fetch_reply import reply, reply_with_records
from ottla.raft.event import Request
from ottla.raft.follower import Follower
from ottla.raft.news import addresses_in, is_for_us, refuse_as_leader, weigh
from ottla.raft.outline import End, Fit
from ottla.raft.parking import PARKED_MAX, WAIT_MS_MAX, Parked
from ottla.raft.replica import Replica
from ottla.raft.settings import ANSWER_BYTES_MAX, PARTITION, TOPIC
from ottla.raft.snapshot import Download, SnapshotId
from ottla.raft.voters import ReplicaKey
from ottla.raft.watermark import advance
from ottla.wire.batch import crc_ok, scan
from ottla.wire.errors import BrokerError, ErrorCode, ProtocolError
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.uuid import METADATA_TOPIC_ID

_Topic = FetchRequest.FetchTopic


def ask(replica: Replica) -> FetchRequest:
    """Ask for what comes behind the log."""
    settings, outline = replica.settings, replica.outline
    partition = _Topic.FetchPartition(
        current_leader_epoch=replica.epoch,
        fetch_offset=outline.end_offset,
        last_fetched_epoch=outline.last_epoch,
        replica_directory_id=settings.directory_id,
        high_watermark=replica.high_watermark,
    )
    return FetchRequest(
        cluster_id=settings.cluster_id,
        replica_state=FetchRequest.ReplicaState(replica_id=settings.node_id),
        max_wait_ms=settings.fetch_wait_ms_max,
        max_bytes=settings.fetch_bytes_max,
        topics=[_Topic(topic=TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])],
    )


def answer(replica: Replica, request: Request, now: int) -> FetchResponse | None:
    """Send records, or say why not; None when there is nothing to say yet, and the fetch waits."""
    message = request.message
    assert isinstance(message, FetchRequest)
    if not is_for_us(replica, message.cluster_id):
        return FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    partition = _asked(message)
    if partition is None:
        return FetchResponse(error_code=ErrorCode.INVALID_REQUEST)
    state = message.replica_state
    key = ReplicaKey(state.replica_id if state else message.replica_id, partition.replica_directory_id)
    if (
        message.max_wait_ms < 0
        or message.max_bytes < 0
        or partition.fetch_offset < 0
        or not 0 <= partition.last_fetched_epoch <= partition.current_leader_epoch
        or key.id == replica.settings.node_id
    ):
        return reply(replica, request, ErrorCode.INVALID_REQUEST)
    code = refuse_as_leader(replica, partition.current_leader_epoch)
    if code:
        return reply(replica, request, code)
    return _serve(replica, request, message, partition, key, now)


def _serve(
    replica: Replica,
    request: Request,
    message: FetchRequest,
    partition: _Topic.FetchPartition,
    key: ReplicaKey,
    now: int,
) -> FetchResponse | None:
    leader, outline = replica.leader, replica.outline
    offset = partition.fetch_offset
    newest = outline.newest_snapshot
    if offset == 0 and newest is not None:
        # Whoever has nothing is served faster with a snapshot.
        fit, end = Fit.SNAPSHOT, End(*newest)
    else:
        fit, end = outline.fit(offset, partition.last_fetched_epoch)
    if fit is not Fit.VALID:
        return reply(replica, request, ErrorCode.NONE, leader.high_watermark, fit=fit, end=end)
    size_bytes_max = min(message.max_bytes, ANSWER_BYTES_MAX)
    leader.fetched(key, offset, outline.end_offset, now)
    if leader.is_voter(key):
        advance(replica)
    if (
        offset < outline.end_offset
        or message.max_wait_ms == 0
        or len(leader.parked) >= PARKED_MAX
        or partition.high_watermark < leader.high_watermark
    ):
        return reply_with_records(replica, request, offset, size_bytes_max)
    message.forgotten_topics_data = []  # of a session that there is none of here: it is not to wait with the rest
    leader.parked.add(Parked(request, offset, size_bytes_max, now + min(message.max_wait_ms, WAIT_MS_MAX)))
    return None


def _asked(message: FetchRequest) -> _Topic.FetchPartition | None:
    topics = message.topics
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    if topics[0].topic_id != METADATA_TOPIC_ID and topics[0].topic != TOPIC:
        return None
    partition = topics[0].partitions[0]
    return partition if partition.partition == PARTITION else None


def expire(replica: Replica, now: int) -> None:
    """Answer the fetches that have waited long enough with what there is: nothing."""
    leader = replica.leader
    for each in leader.parked.take_due(now):
        message = reply(replica, each.request, ErrorCode.NONE, leader.high_watermark)
        replica.outbox.reply(each.request.token, message)


def refuse_orphans(replica: Replica) -> None:
    """Send away whoever waits at a leader that leads no longer."""
    orphans, replica.orphans = replica.orphans, []
    for each in orphans:
        replica.outbox.reply(
            each.request.token, reply(replica, each.request, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        )


def take(replica: Replica, node_id: int, response: FetchResponse, now: int) -> bool:
    """Append what came, or cut the log, or turn to a snapshot; False when the node is to be left alone for a moment."""
    if response.error_code:
        return False
    partition = _told(response)
    if partition is None:
        return False
    current = partition.current_leader
    leader_id, epoch = (current.leader_id, current.leader_epoch) if current is not None else (-1, -1)
    addresses = addresses_in(replica, leader_id, response.node_endpoints)
    outcome = weigh(replica, partition.error_code, leader_id, epoch, addresses, now)
    if outcome is not None:
        return outcome
    role = replica.role
    if partition.error_code or not isinstance(role, Follower):
        return False
    diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
    if diverging is not None and diverging.epoch >= 0:
        outline = replica.outline
        end_offset = outline.cut_for(End(diverging.end_offset, diverging.epoch))
        covered = outline.snapshots[-1].offset if outline.snapshots else 0
        if not max(replica.high_watermark, outline.start_offset, covered) <= end_offset < outline.end_offset:
            return False
        replica.truncate(end_offset)
    elif snapshot is not None and (snapshot.epoch >= 0 or snapshot.end_offset >= 0):
        id, outline = SnapshotId(snapshot.end_offset, snapshot.epoch), replica.outline
        if (
            not 0 <= id.epoch <= replica.epoch
            or id.offset < 0
            or (id.epoch, id.offset) <= (outline.last_epoch, outline.end_offset)
            or id in outline.snapshots
        ):
            return False
        role.download = Download(id)
    elif not append(replica, partition.records or b""):
        return False
    else:
        if partition.high_watermark >= 0:
            replica.commit(partition.high_watermark)
    role.heard(now, replica.settings.fetch_timeout_ms)
    return True


def _told(response: FetchResponse) -> FetchResponse.FetchableTopicResponse.PartitionData | None:
    topics = response.responses
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    if topics[0].topic_id != METADATA_TOPIC_ID and topics[0].topic != TOPIC:
        return None
    partition = topics[0].partitions[0]
    return partition if partition.partition_index == PARTITION else None


def append(replica: Replica, records: bytes | bytearray | memoryview) -> bool:
    """Append the batches that are sound, follow one another, and are of no higher epoch than ours.

    False when there are batches, and the first is none of those.
    """
    outline = replica.outline
    end_offset, last_epoch, size = outline.end_offset, outline.last_epoch, 0
    try:
        for position, batch in scan(records):
            if (
                batch.base_offset != end_offset
                or not last_epoch <= batch.partition_leader_epoch <= replica.epoch
                or batch.last_offset_delta < 0
                or not crc_ok(records, position, batch.size)
            ):
                break
            replica.log.check(records, position)
            end_offset, last_epoch = batch.end_offset, batch.partition_leader_epoch
            size = position + batch.size
    except (ProtocolError, BrokerError):
        pass  # what came before is sound; the rest is fetched again
    if size:
        replica.append(bytes(records[:size]))
    return bool(size or not records)
