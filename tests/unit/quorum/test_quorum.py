"""The driver: what is replied is on disk, what is on disk comes back, and nothing is said after a failed sync."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from ottla.metadata.error import MetadataError
from ottla.metadata.frame import encode
from ottla.quorum.checkpoint import checkpoint_batches, frame_batch, read_checkpoint
from ottla.quorum.driver import Answered
from ottla.quorum.election_state import read_election_state, write_election_state
from ottla.quorum.snapshots import SnapshotWriter
from ottla.raft.event import Tick
from ottla.raft.raft import ANSWERS, TAKES
from ottla.raft.settings import Node
from ottla.raft.voters import Address, Voter, Voters
from ottla.replicated.decision import Decision
from ottla.wire.batch import Batch, read_records, scan
from ottla.wire.control import ControlType, read_control
from ottla.wire.errors import BrokerError, ErrorCode, ProtocolError
from ottla.wire.message import Message
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.records.metadata import BeginTransactionRecord, ConfigRecord, RemoveTopicRecord, TopicRecord
from ottla.wire.uuid import METADATA_TOPIC_ID
from ottla.world.disk import RealFile
from tests.unit.quorum.workshop import ADDRESS, Deaf, HeldWorker, Workshop

MOVED = Address("CONTROLLER", "127.0.0.1", 9999)


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def batches(shop: Workshop) -> list[Batch]:
    data = (shop.log_path / "00000000000000000000.log").read_bytes()
    return [batch for _, batch in scan(data)]


def controls(shop: Workshop) -> list[ControlType]:
    data = (shop.log_path / "00000000000000000000.log").read_bytes()
    found = []
    for position, batch in scan(data):
        if batch.is_control:
            found += [
                control.type for record in read_records(data, position) if (control := read_control(record))
            ]
    return found


def test_a_new_cluster_begins_with_its_leader_voters_and_features(shop: Workshop) -> None:
    assert controls(shop) == [ControlType.LEADER_CHANGE, ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS]
    assert shop.quorum.epoch == 1
    assert shop.quorum.image.features.metadata_version == 30
    assert shop.quorum.finalized_features["kraft.version"] == 1
    assert shop.quorum.committed_offset == shop.quorum.end_offset
    assert read_election_state(shop.disk, str(shop.log_path)).epoch == 1
    assert all(batch.partition_leader_epoch == 1 for batch in batches(shop))


@pytest.mark.parametrize("close", [True, False])
def test_what_was_replied_comes_back(shop: Workshop, close: bool) -> None:
    shop.join()
    assert shop.create("one", "two", partitions=3) == [0, 0]
    before = shop.quorum.image
    shop.reopen(close=close)
    assert shop.quorum.image == before
    assert shop.quorum.epoch == 2
    assert shop.heard[-1][1].offset == shop.quorum.end_offset - 1


def test_the_first_thing_listeners_hear_is_everything(shop: Workshop) -> None:
    shop.join()
    shop.create("one", "two")
    shop.reopen()
    named = [change.name for delta, _ in shop.heard for change in delta.topics.values()]
    assert sorted(named) == ["one", "two"]
    assert all(change.created for delta, _ in shop.heard for change in delta.topics.values())


def test_every_start_opens_an_epoch_and_names_the_voters_once(shop: Workshop) -> None:
    shop.reopen()
    shop.reopen()
    assert shop.quorum.epoch == 3
    assert controls(shop).count(ControlType.LEADER_CHANGE) == 3
    assert controls(shop).count(ControlType.KRAFT_VOTERS) == 1
    shop.reopen(address=MOVED)
    assert controls(shop).count(ControlType.KRAFT_VOTERS) == 2
    assert shop.quorum.voters.by_id[1].addresses == (MOVED,)


def test_the_epoch_rises_above_whatever_was_seen(shop: Workshop) -> None:
    shop.quorum.close()
    state = read_election_state(shop.disk, str(shop.log_path))
    write_election_state(state._replace(epoch=41), shop.disk, str(shop.log_path), 1, shop.quorum.voters)
    shop.reopen(close=False)
    assert shop.quorum.epoch == 42
    (shop.log_path / "quorum-state").unlink()
    shop.reopen()
    assert shop.quorum.epoch == 43


@pytest.mark.parametrize("torn", [b"", bytes(80), b'{"leaderId":1,"leaderEp'])
def test_the_only_voter_goes_on_without_its_election_state(shop: Workshop, torn: bytes) -> None:
    shop.join()
    shop.create("one")
    shop.reopen()
    shop.quorum.close()
    (shop.log_path / "quorum-state").write_bytes(torn)
    shop.reopen(close=False)
    assert shop.quorum.epoch == 3
    assert "one" in shop.quorum.image.topics.by_name
    assert any("quorum-state" in text and "only voter" in text for text in shop.warnings)
    assert read_election_state(shop.disk, str(shop.log_path)).epoch == 3


def test_a_voter_among_others_does_not_go_on_without_its_election_state(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, static=True)
    shop.quorum.close()
    (shop.log_path / "quorum-state").write_bytes(b"")
    shop.voters = Voters.of([Voter(1), Voter(2)])
    with pytest.raises(MetadataError):
        shop.reopen(close=False)
    assert not (shop.log_path / "quorum-state").read_bytes()


@pytest.mark.parametrize("torn", [b"", bytes(80), b"half"])
def test_a_cluster_that_has_begun_does_not_need_its_bootstrap_file(shop: Workshop, torn: bytes) -> None:
    shop.quorum.close()
    path = Path(shop.directory) / "bootstrap.checkpoint"
    path.write_bytes(torn)
    shop.reopen(close=False)
    assert shop.quorum.image.features.metadata_version == 30
    path.unlink()
    shop.reopen()
    assert shop.quorum.image.features.metadata_version == 30


def test_a_cluster_that_has_not_begun_needs_its_bootstrap_file_whole(shop: Workshop) -> None:
    shop.quorum.close()
    for path in shop.log_path.glob("*.log"):
        path.unlink()
    (Path(shop.directory) / "bootstrap.checkpoint").write_bytes(b"")
    with pytest.raises(MetadataError, match=r"bootstrap\.checkpoint is not whole"):
        shop.reopen(close=False)


def test_the_snapshot_that_formatting_left_is_not_needed_once_the_log_names_the_voters(
    shop: Workshop,
) -> None:
    shop.quorum.close()
    (shop.log_path / "00000000000000000000-0000000000.checkpoint").write_bytes(b"")
    shop.reopen(close=False)
    assert shop.quorum.kraft_version == 1
    assert set(shop.quorum.voters.by_id) == {1}


def test_a_dynamic_quorum_that_names_no_voters_is_refused(shop: Workshop) -> None:
    shop.quorum.close()
    for path in shop.log_path.glob("*.log"):
        path.unlink()
    (shop.log_path / "00000000000000000000-0000000000.checkpoint").write_bytes(
        b"".join(checkpoint_batches((), metadata_version=30, now_ms=1, kraft_version=1))
    )
    with pytest.raises(MetadataError, match="does not say who its voters are"):
        shop.reopen(close=False)


def test_a_log_that_recovery_did_not_look_at_is_refused_when_it_is_damaged(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, snapshot_bytes=2000)
    shop.join()
    for number in range(20):
        shop.create(f"t{number}")
    shop.quorum.close()
    for path in shop.log_path.glob("*.checkpoint"):
        path.write_bytes(b"")  # so that all the log is read, though its checked part begins behind them
    (path,) = shop.log_path.glob("*.log")
    damaged = bytearray(path.read_bytes())
    damaged[damaged.index(b"t3") + 1] = ord("x")  # still a name, so that only the checksum tells
    path.write_bytes(damaged)
    with pytest.raises(MetadataError, match="__cluster_metadata-0 is damaged .* fails its checksum"):
        shop.reopen(close=False)


def test_a_reply_and_an_image_wait_for_the_sync(tmp_path: Path) -> None:
    shop = Workshop(tmp_path)
    shop.join()
    worker = HeldWorker()
    shop.quorum.close()
    shop.worker = worker
    shop.reopen(close=False)
    replies = shop.create("one")
    assert replies == []
    assert "one" not in shop.quorum.image.topics.by_name
    assert "one" in shop.quorum.machine.image.topics.by_name
    later = shop.create("two")
    assert len(worker.jobs) == 1
    worker.work()
    assert (replies, later) == ([0], [])
    assert set(shop.quorum.image.topics.by_name) == {"one"}
    worker.work()
    assert later == [0]
    assert worker.jobs == []


def test_listeners_hear_before_the_reply(shop: Workshop) -> None:
    shop.join()
    order: list[str] = []
    shop.quorum.listen(lambda delta, image: order.append("image"))
    replies = shop.create("one")
    assert replies == [0]
    shop.quorum.submit(
        lambda controller, now: Decision(
            None, (ConfigRecord(resource_type=16, resource_name="s", name="n", value="v"),)
        ),
        lambda reply: order.append("reply"),
    )
    assert order == ["image", "image", "reply"]


def test_after_a_failed_sync_nothing_is_acknowledged(tmp_path: Path) -> None:
    shop = Workshop(tmp_path)
    shop.join()
    shop.quorum.close()
    worker = shop.worker = HeldWorker()
    shop.reopen(close=False)
    replies = shop.create("one")
    worker.work(OSError(errno.EIO, "Input/output error"))
    assert [getattr(reply, "code", reply) for reply in replies] == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert "one" not in shop.quorum.image.topics.by_name
    assert [error.errno for error in shop.failures] == [errno.EIO]
    assert [getattr(reply, "code", reply) for reply in shop.create("two")] == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert worker.jobs == []


@pytest.mark.parametrize("where", ["pin", "sync"])
def test_a_sync_for_which_no_descriptor_is_left_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    shop = Workshop(tmp_path)
    shop.join()
    shop.quorum.close()
    worker = shop.worker = HeldWorker()
    calls = delayed(shop)
    shop.reopen(close=False)
    error = OSError(errno.EMFILE, "Too many open files")
    if where == "pin":
        with monkeypatch.context() as patch:
            patch.setattr("ottla.quorum.driver.pin_all", Mock(side_effect=error))
            replies = shop.create("one")
        assert worker.jobs == []
    else:
        replies = shop.create("one")
        worker.work(error)
    assert (replies, shop.failures) == ([], [])
    again = [callback for delay, callback in calls if delay == 0.1]
    assert len(again) == 1
    again[0]()
    worker.work()
    assert replies == [0]


def test_a_sync_that_breaks_off_ends_the_quorum_instead_of_leaving_it_waiting(tmp_path: Path) -> None:
    shop = Workshop(tmp_path)
    shop.join()
    shop.quorum.close()
    worker = shop.worker = HeldWorker()
    shop.reopen(close=False)
    replies = shop.create("one")
    worker.work(RuntimeError("nobody expects this"))
    assert [getattr(reply, "code", reply) for reply in replies] == [ErrorCode.KAFKA_STORAGE_ERROR]
    (failure,) = shop.failures
    assert "nobody expects this" in str(failure)


@pytest.mark.parametrize("where", ["pin", "sync"])
def test_a_sync_that_fails_by_our_own_fault_is_reported_and_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    shop = Workshop(tmp_path)
    shop.join()
    shop.quorum.close()
    worker = shop.worker = HeldWorker()
    calls = delayed(shop)
    shop.reopen(close=False)
    error = OSError(errno.EBADF, "Bad file descriptor")
    if where == "pin":
        with monkeypatch.context() as patch:
            patch.setattr("ottla.quorum.driver.pin_all", Mock(side_effect=error))
            replies = shop.create("one")
        assert worker.jobs == []
    else:
        replies = shop.create("one")
        worker.work(error)
    assert (replies, shop.failures) == ([], [])
    assert any("a bug of Ottla" in text and "Bad file descriptor" in text for text in shop.warnings)
    (again,) = [callback for delay, callback in calls if delay == 0.1]
    again()
    worker.work()
    assert replies == [0]


def delayed(shop: Workshop) -> list[tuple[float, Callable[[], object]]]:
    """Have a workshop's timers kept instead of running."""
    calls: list[tuple[float, Callable[[], object]]] = []

    def call_later(delay: float, callback: Callable[[], object]) -> SimpleNamespace:
        calls.append((delay, callback))
        return SimpleNamespace(cancel=lambda: None)

    shop.call_later = call_later
    return calls


def test_a_decision_that_fails_by_our_own_fault_is_refused_and_the_next_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Workshop(tmp_path)
    shop.join()
    with monkeypatch.context() as patch:
        patch.setattr(RealFile, "append", Mock(side_effect=OSError(errno.EINVAL, "Invalid argument")))
        (refused,) = shop.create("one")
    assert isinstance(refused, BrokerError) and refused.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert shop.failures == [] and any("a bug of Ottla" in text for text in shop.warnings)
    assert shop.create("two") == [0]


@pytest.mark.parametrize("where", ["sync", "append"])
def test_a_snapshot_that_breaks_off_is_not_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    shop = Workshop(tmp_path, snapshot_interval_ms=1000)
    shop.join()

    def fail(self: SnapshotWriter) -> bool:
        raise RuntimeError("nobody expects this")

    def broken(self: RealFile) -> None:
        if self.path.endswith(".part"):
            raise RuntimeError("nobody expects this")

    with monkeypatch.context() as patch:
        if where == "sync":
            patch.setattr(RealFile, "sync", broken)
        else:
            patch.setattr(SnapshotWriter, "step", fail)
        shop.clock.ms += 2000
        shop.quorum.tick()
    assert shop.quorum.statistics["snapshots_taken"] == 0
    assert any("nobody expects this" in text for text in shop.warnings)
    assert not [name for name in os.listdir(shop.log_path) if name.endswith(".part")]
    shop.create("one")
    shop.clock.ms += 2000
    shop.quorum.tick()
    assert shop.quorum.statistics["snapshots_taken"] == 1


def test_a_full_disk_is_an_error_one_can_try_again(shop: Workshop) -> None:
    shop.join()
    shop.disk.full = True
    (reply,) = shop.create("one")
    assert isinstance(reply, BrokerError)
    assert reply.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "one" not in shop.quorum.machine.image.topics.by_name
    shop.disk.full = False
    assert shop.create("one") == [0]
    shop.reopen(close=False)
    assert set(shop.quorum.image.topics.by_name) == {"one"}


def test_a_decision_that_contradicts_the_log_is_not_written(shop: Workshop) -> None:
    replies: list[object] = []
    end_offset = shop.quorum.end_offset
    wrong = RemoveTopicRecord(topic_id=bytes([9] * 16))
    shop.quorum.submit(lambda controller, now: Decision("never", (wrong,)), replies.append)
    assert [getattr(reply, "code", reply) for reply in replies] == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert shop.quorum.end_offset == end_offset
    shop.reopen(close=False)


def test_a_decision_too_large_for_a_batch_is_a_transaction(shop: Workshop) -> None:
    records = tuple(
        ConfigRecord(resource_type=16, resource_name=str(number), name="n", value="v")
        for number in range(10_001)
    )
    replies: list[object] = []
    shop.quorum.submit(lambda controller, now: Decision("done", records), replies.append)
    assert replies == ["done"]
    assert [batch.record_count for batch in batches(shop)][-4:] == [1, 10_000, 1, 1]
    before = shop.quorum.image
    assert len(before.configs.names(16)) == 10_001
    shop.reopen()
    assert shop.quorum.image == before


def test_large_values_are_split_by_size(shop: Workshop) -> None:
    records = tuple(
        ConfigRecord(resource_type=16, resource_name=str(number), name="n", value="v" * 30_000)
        for number in range(300)
    )
    shop.quorum.submit(lambda controller, now: Decision(None, records), lambda reply: None)
    assert max(batch.size for batch in batches(shop)) <= 8 * 1024 * 1024
    shop.reopen()
    assert len(shop.quorum.image.configs.names(16)) == 300


def test_a_transaction_that_a_crash_cut_is_undone(shop: Workshop) -> None:
    shop.join()
    shop.quorum.submit(
        lambda controller, now: Decision(None, (BeginTransactionRecord(name="cut"),)), lambda reply: None
    )
    cut = TopicRecord(name="ghost", topic_id=bytes([4] * 16))
    shop.quorum.submit(lambda controller, now: Decision(None, (cut,)), lambda reply: None)
    shop.reopen(close=False)
    assert "ghost" not in shop.quorum.image.topics.by_name
    assert shop.create("one") == [0]
    shop.reopen(close=False)
    assert set(shop.quorum.image.topics.by_name) == {"one"}


def test_every_torn_end_of_the_log_loses_only_what_was_torn(tmp_path: Path) -> None:
    shop = Workshop(tmp_path)
    shop.join()
    shop.create("one")
    file = shop.log_path / "00000000000000000000.log"
    kept = file.stat().st_size
    shop.create("two")
    whole = file.read_bytes()
    for size in range(kept, len(whole)):
        file.write_bytes(whole[:size])
        shop.reopen(close=False)
        assert set(shop.quorum.image.topics.by_name) == {"one"}
        assert shop.create("three") == [0]


def test_snapshots_are_taken_when_the_log_has_grown(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, snapshot_bytes=2000)
    shop.join()
    for number in range(40):
        assert shop.create(f"t{number}") == [0]
    names = sorted(path.name for path in shop.log_path.glob("*.checkpoint"))
    assert len(names) > 2
    checkpoint = read_checkpoint((shop.log_path / names[-1]).read_bytes(), names[-1])
    assert checkpoint.kraft_version == 1
    assert checkpoint.voters is not None
    assert set(checkpoint.voters.by_id) == {1}
    before = shop.quorum.image
    shop.reopen(close=False)
    assert shop.quorum.image == before
    assert shop.quorum.statistics["bytes_since_snapshot"] < 2000


def test_who_follows_counts_the_bytes_of_the_log_toward_a_snapshot(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, static=True)
    shop.join()
    for number in range(40):
        before_last = shop.quorum.end_offset
        assert shop.create(f"t{number}") == [0]
    shop.quorum.close()
    log_bytes = (shop.log_path / "00000000000000000000.log").stat().st_size
    assert log_bytes > 4_000
    end_offset = shop.quorum.end_offset
    shop.voters = Voters.of(Voter(id, addresses=(ADDRESS,)) for id in (1, 2))
    shop.wires = Deaf()
    shop.reopen(close=False)
    assert shop.quorum.statistics["bytes_since_snapshot"] == 0, "nothing is known to be committed"
    shop.quorum.committed(before_last)
    assert 4_000 < shop.quorum.statistics["bytes_since_snapshot"] < log_bytes
    shop.quorum.committed(end_offset)
    assert shop.quorum.statistics["bytes_since_snapshot"] == log_bytes


def test_snapshots_are_taken_when_time_has_passed(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, snapshot_interval_ms=1000)
    shop.quorum.tick()
    assert shop.quorum.statistics["snapshots_taken"] == 0
    shop.clock.ms += 1000
    shop.quorum.tick()
    assert shop.quorum.statistics["snapshots_taken"] == 1
    shop.clock.ms += 5000
    shop.quorum.tick()
    assert shop.quorum.statistics["snapshots_taken"] == 1, "nothing was written since"


def test_old_snapshots_and_the_log_below_them_go(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, snapshot_bytes=2000, segment_bytes=3000, retention_bytes=6000)
    shop.join()
    for number in range(40):
        shop.create(f"t{number}")
    offsets = [int(path.name[:20]) for path in sorted(shop.log_path.glob("*.checkpoint"))]
    segments = [int(path.name[:20]) for path in sorted(shop.log_path.glob("*.log"))]
    assert offsets[0] > 0
    assert segments[0] > 0
    # Kafka refuses a log that begins above its newest snapshot.
    assert segments[0] <= offsets[-1]
    assert shop.quorum.start_offset <= offsets[0]
    before = shop.quorum.image
    shop.reopen(close=False)
    assert shop.quorum.image == before
    shop.reopen()
    assert shop.quorum.image == before


def test_a_damaged_snapshot_is_passed_over(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, snapshot_bytes=2000)
    shop.join()
    for number in range(20):
        shop.create(f"t{number}")
    before = shop.quorum.image
    shop.quorum.close()
    newest = max(shop.log_path.glob("*.checkpoint"))
    damaged = bytearray(newest.read_bytes())
    damaged[200] ^= 1
    newest.write_bytes(damaged)
    shop.reopen(close=False)
    assert shop.quorum.image == before
    assert any("older snapshot" in text for text in shop.warnings)


def test_a_log_without_what_was_before_it_is_refused(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, snapshot_bytes=2000, segment_bytes=3000, retention_bytes=6000)
    shop.join()
    for number in range(40):
        shop.create(f"t{number}")
    shop.quorum.close()
    for path in shop.log_path.glob("*.checkpoint"):
        path.unlink()
    with pytest.raises(MetadataError, match="no sound snapshot"):
        shop.reopen(close=False)


def test_a_snapshot_beyond_the_log_is_where_the_log_goes_on(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, snapshot_bytes=2000)
    shop.join()
    for number in range(20):
        shop.create(f"t{number}")
    shop.clock.ms += 3_600_000
    shop.quorum.tick()
    before = shop.quorum.image
    shop.quorum.close()
    for path in shop.log_path.glob("*.log"):
        path.unlink()
    shop.reopen(close=False)
    assert shop.quorum.image == before
    assert shop.create("more") == [0]
    shop.reopen(close=False)
    assert "more" in shop.quorum.image.topics.by_name


def test_a_snapshot_of_a_later_epoch_than_the_log_is_where_the_log_goes_on(tmp_path: Path) -> None:
    """It was fetched from a later leader, and the node ended before its own log was put away."""
    shop = Workshop(tmp_path, snapshot_bytes=2000)
    shop.join()
    for number in range(20):
        shop.create(f"t{number}")
    if not shop.quorum.statistics["bytes_since_snapshot"]:
        shop.create("t20")  # else there would be nothing to take a snapshot of
    shop.clock.ms += 3_600_000
    shop.quorum.tick()
    shop.create("of-the-old-epoch")
    epoch = shop.quorum.epoch
    shop.quorum.close()
    newest = max(shop.log_path.glob("*.checkpoint"))
    offset, _, _ = newest.name.partition("-")
    newest.rename(newest.with_name(f"{offset}-{epoch + 5:010d}.checkpoint"))
    shop.reopen(close=False)
    assert shop.quorum.start_offset == int(offset)
    assert "of-the-old-epoch" not in shop.quorum.image.topics.by_name
    assert "t19" in shop.quorum.image.topics.by_name
    assert shop.quorum.epoch > epoch + 5
    assert shop.create("more") == [0]


def test_a_snapshot_that_cannot_be_written_is_tried_again(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, snapshot_interval_ms=1000)
    shop.join()
    shop.clock.ms += 1000
    shop.disk.full = True
    shop.quorum.tick()
    assert shop.quorum.statistics["snapshots_taken"] == 0
    assert not list(shop.log_path.glob("*.part"))
    shop.disk.full = False
    shop.clock.ms += 1000
    shop.quorum.tick()
    assert shop.quorum.statistics["snapshots_taken"] == 1


def test_a_half_written_snapshot_is_swept_away(shop: Workshop) -> None:
    part = shop.log_path / "00000000000000000009-0000000001.checkpoint.part"
    part.write_bytes(b"half")
    shop.reopen()
    assert not part.exists()


def test_a_static_quorum_takes_its_voters_from_the_settings(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, static=True)
    assert controls(shop) == [ControlType.LEADER_CHANGE]
    assert shop.quorum.kraft_version == 0
    assert "kraft.version" not in shop.quorum.finalized_features
    state = (shop.log_path / "quorum-state").read_text()
    assert state == (
        '{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
        '"currentVoters":[{"voterId":1}],"data_version":0}'
    )
    shop.reopen()
    assert shop.quorum.epoch == 2
    shop.voters = Voters.of([Voter(1), Voter(2)])
    with pytest.raises(MetadataError, match="voters 1, 2"):
        shop.reopen()
    shop.voters = None
    with pytest.raises(MetadataError, match="names no voters"):
        shop.reopen(close=False)


def test_a_directory_that_is_no_voter_does_not_lead(shop: Workshop) -> None:
    shop.quorum.close()
    text = (Path(shop.directory) / "meta.properties").read_text()
    lines = [
        "directory.id=AAAAAAAAAAAAAAAAAAAAZg" if "directory.id" in line else line
        for line in text.splitlines()
    ]
    (Path(shop.directory) / "meta.properties").write_text("\n".join(lines))
    with pytest.raises(MetadataError, match="is not a voter"):
        shop.reopen(close=False)


def test_the_quorum_describes_itself(shop: Workshop) -> None:
    topic = DescribeQuorumRequest.TopicData
    request = DescribeQuorumRequest(
        topics=[topic(topic_name="__cluster_metadata", partitions=[topic.PartitionData(partition_index=0)])]
    )
    answers: list[DescribeQuorumResponse] = []
    shop.quorum.serve(request, 2, "CONTROLLER", answers.append)
    (answer,) = answers
    (partition,) = answer.topics[0].partitions
    assert (partition.leader_id, partition.leader_epoch) == (1, 1)
    assert partition.high_watermark == shop.quorum.end_offset
    assert [(each.replica_id, each.log_end_offset) for each in partition.current_voters] == [
        (1, shop.quorum.end_offset)
    ]
    assert [(each.node_id, each.listeners[0].port) for each in answer.nodes] == [(1, ADDRESS.port)]
    request.topics[0].topic_name = "other"
    shop.quorum.serve(request, 2, "CONTROLLER", answers.append)
    assert answers[-1].topics[0].partitions[0].error_code == 3


def metadata_fetch(shop: Workshop, offset: int, epoch: int, **fields: int) -> FetchRequest:
    topic = FetchRequest.FetchTopic
    partition = topic.FetchPartition(
        fetch_offset=offset,
        last_fetched_epoch=epoch,
        current_leader_epoch=shop.quorum.epoch,
        replica_directory_id=b"2" * 16,
        high_watermark=-1,
    )
    return FetchRequest(
        replica_state=FetchRequest.ReplicaState(replica_id=2),
        topics=[topic(topic_id=METADATA_TOPIC_ID, partitions=[partition])],
        **fields,
    )


def part_of(answer: Message) -> FetchResponse.FetchableTopicResponse.PartitionData:
    assert isinstance(answer, FetchResponse)
    return answer.responses[0].partitions[0]


@pytest.mark.parametrize("size", [-1, -(2**31)])
def test_a_fetch_of_the_log_with_a_negative_size_is_refused_and_nothing_else(
    shop: Workshop, size: int
) -> None:
    shop.join()
    for number in range(3):
        shop.create(f"before-{number}")
    shop.reopen()  # so that what was written is read from the file
    answers: list[Message] = []
    shop.quorum.serve(metadata_fetch(shop, 1, 1, max_bytes=size), 17, "CONTROLLER", answers.append)
    assert part_of(answers[0]).error_code == ErrorCode.INVALID_REQUEST
    wish = metadata_fetch(shop, shop.quorum.end_offset, shop.quorum.epoch, max_bytes=size, max_wait_ms=500)
    shop.quorum.serve(wish, 17, "CONTROLLER", answers.append)
    assert shop.create("after") == [0]
    shop.quorum.serve(metadata_fetch(shop, 1, 1, max_bytes=100), 17, "CONTROLLER", answers.append)
    assert len(answers) == 3 and part_of(answers[-1]).records
    assert not shop.failures


def test_a_read_that_fails_by_our_own_fault_is_answered_and_reported(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> bytes:
        raise OSError(errno.EINVAL, "Invalid argument")

    shop.join()
    answers: list[Message] = []
    with monkeypatch.context() as patched:
        patched.setattr(type(shop.quorum._started.log), "read", fail)
        shop.quorum.serve(metadata_fetch(shop, 1, 1, max_bytes=100), 17, "CONTROLLER", answers.append)
    assert part_of(answers[0]).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert any("Traceback" in line for line in shop.warnings)
    assert shop.create("after") == [0] and not shop.failures


def test_a_request_that_breaks_raft_is_answered_and_the_quorum_goes_on(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Message:
        raise ValueError("broken")

    shop.join()
    answers: list[Message] = []
    with monkeypatch.context() as patched:
        patched.setitem(ANSWERS, FetchRequest, broken)
        shop.quorum.serve(metadata_fetch(shop, 1, 1), 17, "CONTROLLER", answers.append)
    assert isinstance(answers[0], FetchResponse)
    assert answers[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert any("ValueError: broken" in line for line in shop.warnings)
    assert shop.create("after") == [0] and not shop.failures


def test_sessions_run_out_as_time_passes(shop: Workshop) -> None:
    shop.join()
    assert shop.quorum.machine.deadline is None, "the only broker is the controller's own node"
    shop.clock.ms += 60_000
    shop.quorum.tick()
    assert shop.quorum.image.brokers[1].active


def test_a_log_that_cannot_be_read_says_where_and_what_to_do(shop: Workshop) -> None:
    offset = shop.quorum.end_offset
    data = frame_batch([b"\x01\x02\x00\xff\xff"], base_offset=offset, epoch=1, timestamp_ms=0)
    shop.quorum.close()
    with (shop.log_path / "00000000000000000000.log").open("ab") as file:
        file.write(data)
    with pytest.raises(MetadataError, match=rf"{shop.log_path} .* at offset {offset}: .*TopicRecord.*copy"):
        shop.reopen(close=False)


def test_a_batch_that_cannot_be_read_is_refused_and_told_of_now_and_then(shop: Workshop) -> None:
    view = shop.quorum.driver.raft.replica.log
    good = frame_batch([encode(ConfigRecord())], base_offset=5, epoch=1, timestamp_ms=0)
    view.check(good, 0)
    bad = frame_batch([b"\x01\x02\x00\xff\xff"], base_offset=5, epoch=1, timestamp_ms=0)
    for _ in range(20):
        with pytest.raises(ProtocolError, match="TopicRecord"):
            view.check(good + bad, len(good))
    assert [line.split(" (")[1].split()[0] for line in shop.warnings] == ["1", "2", "4", "8", "16"]
    assert "offset 5 that cannot be read, and it was not appended" in shop.warnings[0]


def test_an_answer_that_breaks_raft_is_reported_and_its_sender_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Answered] = []

    class Kept:
        def ask(self, node: Node, request: Message, answered: Answered) -> None:
            asked.append(answered)

    def broken(*_: object) -> bool:
        raise ValueError("broken")

    shop = Workshop(tmp_path, static=True)
    shop.quorum.close()
    shop.voters = Voters.of(Voter(id, addresses=(ADDRESS,)) for id in (1, 2))
    shop.wires = Kept()
    shop.reopen(close=False)
    monkeypatch.setitem(TAKES, FetchResponse, broken)
    (answered,) = asked
    answered(FetchResponse())
    assert any("ValueError: broken" in line for line in shop.warnings)
    assert len(asked) == 1, "not at once"
    shop.clock.ms += 50
    shop.quorum.driver.step(Tick())
    assert len(asked) == 2 and not shop.failures


def test_a_wall_clock_that_is_set_back_keeps_nobody_from_asking_again(tmp_path: Path) -> None:
    asked: list[Answered] = []
    alarms: list[float] = []

    class Kept:
        def ask(self, node: Node, request: Message, answered: Answered) -> None:
            asked.append(answered)

    def call_later(delay: float, callback: Callable[[], object]) -> SimpleNamespace:
        alarms.append(delay)
        return SimpleNamespace(cancel=lambda: None)

    shop = Workshop(tmp_path, static=True)
    shop.quorum.close()
    shop.voters = Voters.of(Voter(id, addresses=(ADDRESS,)) for id in (1, 2))
    shop.wires, shop.call_later = Kept(), call_later
    shop.reopen(close=False)
    (answered,) = asked
    answered(ErrorCode.BROKER_NOT_AVAILABLE)
    before = len(asked)
    shop.clock.ahead_ms = -365 * 86_400_000
    for _ in range(10):
        shop.clock.ms += 1_000
        shop.quorum.driver.step(Tick())
    assert len(asked) > before
    assert max(alarms) < 60
