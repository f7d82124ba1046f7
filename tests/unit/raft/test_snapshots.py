"""Snapshots: served piece by piece, fetched piece by piece, and put in the place of the log."""

from ottla.raft.event import Snapshotted, Spoiled, Trimmed
from ottla.raft.snapshot import SNAPSHOT_BYTES_MAX, SnapshotId
from ottla.sim.quorum.snapshot import Content, write_snapshot
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from tests.unit.raft.bench import CLUSTER, TOPIC, Bench, batch, directory, fetch_response, told, voters

ID = SnapshotId(9, 4)
SNAPSHOT = write_snapshot(ID, Content(b"state", 1, voters(1, 2, 3, 4)))


def piece_request(id: SnapshotId, position: int, epoch: int = 1, size: int = 50) -> FetchSnapshotRequest:
    kind = FetchSnapshotRequest.TopicSnapshot
    part = kind.PartitionSnapshot(
        current_leader_epoch=epoch,
        snapshot_id=kind.PartitionSnapshot.SnapshotId(end_offset=id.offset, epoch=id.epoch),
        position=position,
        replica_directory_id=directory(2),
    )
    return FetchSnapshotRequest(
        cluster_id=CLUSTER, replica_id=2, max_bytes=size, topics=[kind(name=TOPIC, partitions=[part])]
    )


def piece(
    data: bytes, position: int, size: int, *, id: SnapshotId = ID, code: int = 0
) -> FetchSnapshotResponse:
    kind = FetchSnapshotResponse.TopicSnapshot
    part = kind.PartitionSnapshot(
        error_code=code,
        snapshot_id=kind.PartitionSnapshot.SnapshotId(end_offset=id.offset, epoch=id.epoch),
        current_leader=kind.PartitionSnapshot.LeaderIdAndEpoch(leader_id=2, leader_epoch=5),
        size=size,
        position=position,
        unaligned_records=data,
    )
    return FetchSnapshotResponse(topics=[kind(name=TOPIC, partitions=[part])])


def behind() -> Bench:
    """A follower that was told to fetch a snapshot."""
    bench = Bench(epochs=[1]).follow(2, epoch=5)
    bench.sent(FetchRequest)
    bench.answer(2, fetch_response(2, 5, snapshot=ID))
    return bench


def leader() -> tuple[Bench, SnapshotId]:
    """A leader whose log begins behind a snapshot."""
    bench = Bench().establish()
    bench.append()
    bench.fetch_by(2, bench.raft.end_offset)
    id = SnapshotId(bench.committed, 1)
    bench.log.snapshots[id] = SNAPSHOT
    bench.step(Snapshotted(id))
    bench.log.trim(id)
    bench.step(Trimmed(id))
    bench.append()
    return bench, id


def test_who_is_too_far_behind_is_told_of_a_snapshot() -> None:
    bench, id = leader()
    for offset in (0, 1):
        snapshot = told(bench.fetch_by(3, offset, last_epoch=offset)).snapshot_id
        assert snapshot is not None
        assert (snapshot.end_offset, snapshot.epoch) == id
    assert told(bench.fetch_by(3, id.offset)).records


def test_a_snapshot_is_served_in_pieces() -> None:
    bench, id = leader()
    data = b""
    while len(data) < len(SNAPSHOT):
        part = bench.ask(piece_request(id, len(data))).topics[0].partitions[0]
        assert (part.error_code, part.size, part.position) == (0, len(SNAPSHOT), len(data))
        data += bytes(part.unaligned_records)
    assert data == SNAPSHOT


def test_pieces_that_are_refused() -> None:
    bench, id = leader()

    def code(request: FetchSnapshotRequest) -> ErrorCode:
        return ErrorCode(bench.ask(request).topics[0].partitions[0].error_code)

    assert code(piece_request(SnapshotId(1, 1), 0)) == ErrorCode.SNAPSHOT_NOT_FOUND
    assert code(piece_request(SnapshotId(0, 0), 0)) == ErrorCode.SNAPSHOT_NOT_FOUND
    assert code(piece_request(id, len(SNAPSHOT))) == ErrorCode.POSITION_OUT_OF_RANGE
    assert code(piece_request(id, -1)) == ErrorCode.POSITION_OUT_OF_RANGE
    assert code(piece_request(id, 0, epoch=0)) == ErrorCode.FENCED_LEADER_EPOCH
    assert code(piece_request(id, 0, epoch=9)) == ErrorCode.UNKNOWN_LEADER_EPOCH
    for size in (-1, -(2**31)):
        request = piece_request(id, 0)
        request.max_bytes = size
        assert code(request) == ErrorCode.INVALID_REQUEST


def test_fetching_a_snapshot_keeps_a_leader_in_office() -> None:
    bench, id = leader()
    for _ in range(4):
        bench.wait(2_000)
        bench.ask(piece_request(id, 0))
    assert bench.role == "Leader"


def test_a_snapshot_is_fetched_and_takes_the_place_of_the_log() -> None:
    bench = behind()
    ((node_id, asked),) = bench.sent(FetchSnapshotRequest)
    assert node_id == 2
    assert asked.topics[0].partitions[0].position == 0
    half = len(SNAPSHOT) // 2
    ready = bench.answer(2, piece(SNAPSHOT[:half], 0, len(SNAPSHOT)))
    assert ready.chunk == (ID, 0, SNAPSHOT[:half], False)
    ((_, asked),) = bench.sent(FetchSnapshotRequest)
    assert asked.topics[0].partitions[0].position == half
    ready = bench.answer(2, piece(SNAPSHOT[half:], half, len(SNAPSHOT)))
    assert ready.chunk == (ID, half, SNAPSHOT[half:], True)
    assert not bench.sent(FetchRequest), "it is not on disk yet"
    bench.log.snapshots[ID] = SNAPSHOT
    ready = bench.receive(ID)
    assert (ready.reset_to, ready.committed) == (ID, 9)
    assert bench.raft.voters == voters(1, 2, 3, 4), "the snapshot names them"
    ((_, fetch),) = bench.sent(FetchRequest)
    part = fetch.topics[0].partitions[0]
    assert (part.fetch_offset, part.last_fetched_epoch) == (9, 4)


def test_a_snapshot_that_is_gone_is_asked_for_anew() -> None:
    for response in (
        piece(b"", 0, 0, code=ErrorCode.SNAPSHOT_NOT_FOUND),
        piece(SNAPSHOT, 0, len(SNAPSHOT), id=SnapshotId(11, 4)),
        piece(SNAPSHOT, 7, len(SNAPSHOT)),
    ):
        bench = behind()
        bench.sent(FetchSnapshotRequest)
        ready = bench.answer(2, response)
        assert ready.chunk is None
        assert len(bench.sent(FetchRequest)) == 1, "a fetch says which there is now"


def test_a_spoiled_snapshot_is_fetched_again() -> None:
    bench = behind()
    bench.sent(FetchSnapshotRequest)
    bench.answer(2, piece(b"nonsense", 0, 8))
    bench.step(Spoiled(ID))
    assert len(bench.sent(FetchRequest)) == 1
    assert bench.raft.end_offset == 1


def test_a_snapshot_is_taken_whatever_the_role_has_become() -> None:
    bench = behind()
    bench.sent(FetchSnapshotRequest)
    bench.answer(2, piece(SNAPSHOT, 0, len(SNAPSHOT)))
    bench.wait(2_100)
    assert bench.role == "Prospective"
    bench.log.snapshots[ID] = SNAPSHOT
    bench.receive(ID)
    assert (bench.raft.end_offset, bench.committed) == (9, 9)


def test_a_snapshot_of_the_past_changes_nothing() -> None:
    bench = Bench(epochs=[1] * 20)
    bench.log.snapshots[SnapshotId(9, 1)] = SNAPSHOT
    ready = bench.receive(SnapshotId(9, 1))
    assert ready.reset_to is None
    assert bench.raft.end_offset == 20


def test_a_snapshot_that_is_here_already_is_not_fetched() -> None:
    bench = Bench(epochs=[1] * 20).follow(2, epoch=5)
    bench.sent(FetchRequest)
    bench.answer(2, fetch_response(2, 5, batch(20, 5), high_watermark=20))
    bench.log.snapshots[SnapshotId(20, 1)] = SNAPSHOT
    bench.step(Snapshotted(SnapshotId(20, 1)))
    bench.sent(FetchRequest)
    bench.answer(2, fetch_response(2, 5, snapshot=(20, 1)))
    assert not bench.sent(FetchSnapshotRequest)


def test_sizes_that_no_snapshot_has_are_not_believed() -> None:
    half = len(SNAPSHOT) // 2
    for size in (2**62, SNAPSHOT_BYTES_MAX + 1, half - 1, 0, -1):
        bench = behind()
        bench.sent(FetchSnapshotRequest)
        ready = bench.answer(2, piece(SNAPSHOT[:half], 0, size))
        assert ready.chunk is None, size
        bench.wait(1_000)
        assert not bench.sent(FetchSnapshotRequest), "the download is given up"


def test_a_snapshot_whose_size_changes_is_given_up() -> None:
    half = len(SNAPSHOT) // 2
    for size in (len(SNAPSHOT) + 1, len(SNAPSHOT) - 1, 2**40):
        bench = behind()
        bench.sent(FetchSnapshotRequest)
        assert bench.answer(2, piece(SNAPSHOT[:half], 0, len(SNAPSHOT))).chunk is not None
        bench.sent(FetchSnapshotRequest)
        assert bench.answer(2, piece(SNAPSHOT[half:], half, size)).chunk is None
