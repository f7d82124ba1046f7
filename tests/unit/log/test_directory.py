"""A log directory: whose it is, what a start costs, what a stop leaves."""

import errno
import json
import os
import subprocess
import sys
from collections import Counter

import pytest

from ottla.log.config import LogConfig
from ottla.log.directory import LogDirectory
from ottla.log.identity import Identity, IdentityError, read_identity, read_topic_id
from ottla.wire.uuid import uuid_text
from ottla.world.disk import RealDisk
from ottla.world.entropy import SeededEntropy
from ottla.world.worker import InlineWorker
from tests.unit.log.workbench import NOW, TOPIC_ID, FaultyDisk, Workbench, put, read_all


def open_directory(path, disk=None):
    directory = LogDirectory(str(path), disk or RealDisk(), SeededEntropy(1), lambda text: None)
    directory.open()
    directory.load(lambda topic: LogConfig())
    return directory


def test_two_processes_do_not_share_a_directory(tmp_path):
    code = f"""
from tests.unit.log.test_directory import open_directory
try:
    open_directory({str(tmp_path)!r})
except BlockingIOError:
    print("locked")
"""
    directory = open_directory(tmp_path)
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "locked\n", found.stderr
    directory.close()
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "", found.stderr


def test_meta_properties(tmp_path):
    identity = Identity("MkU3OEVBNTcwNTJENDM2Qg", 3, bytes(range(16)))
    directory = open_directory(tmp_path)
    assert directory.identity is None
    directory.format(identity)
    directory.close()
    lines = (tmp_path / "meta.properties").read_text().splitlines()
    assert sorted(line for line in lines if not line.startswith("#")) == [
        "cluster.id=MkU3OEVBNTcwNTJENDM2Qg",
        f"directory.id={uuid_text(bytes(range(16)))}",
        "node.id=3",
        "version=1",
    ]
    assert open_directory(tmp_path).identity == identity


def test_meta_properties_as_java_writes_them(tmp_path):
    (tmp_path / "meta.properties").write_text(
        "#\n#Sun Nov 16 00:00:00 UTC 2025\nnode.id=1\nversion=1\n"
        "directory.id=AAECAwQFBgcICQoLDA0ODw\ncluster.id=4L6g3nShT-eMCtK--X86sw\n"
    )
    expected = Identity("4L6g3nShT-eMCtK--X86sw", 1, bytes(range(16)))
    assert read_identity(RealDisk(), str(tmp_path)) == expected


@pytest.mark.parametrize(
    "text", ["", "version=0\n", "version=1\nnode.id=x\ncluster.id=a\n", "version=1\nnode.id=1\n", "\xff"]
)
def test_meta_properties_that_say_nothing(tmp_path, text):
    (tmp_path / "meta.properties").write_bytes(text.encode("latin-1"))
    with pytest.raises(IdentityError):
        read_identity(RealDisk(), str(tmp_path))


def test_partition_metadata(tmp_path):
    bench = Workbench(tmp_path)
    text = f"version: 0\ntopic_id: {uuid_text(TOPIC_ID)}"
    assert (tmp_path / "t-0" / "partition.metadata").read_text() == text
    assert bench.restart().topic_id == TOPIC_ID
    bench.stop()
    (tmp_path / "t-0" / "partition.metadata").write_text("version: 0\ntopic_id: ???")
    assert read_topic_id(RealDisk(), bench.log_path) is None
    assert bench.start().topic_id == bytes(16)
    bench.stop()


def test_a_clean_stop_says_so(tmp_path):
    bench = Workbench(tmp_path)
    put(bench.log, 1)
    assert not bench.directory.was_clean
    bench.stop()
    marker = tmp_path / ".kafka_cleanshutdown"
    assert json.loads(marker.read_text()) == {"version": 0, "brokerEpoch": 7}
    log = bench.start()
    assert bench.directory.was_clean
    assert bench.directory.previous_broker_epoch == 7
    assert log.is_dormant
    assert not marker.exists()
    bench.stop(clean=False)
    bench.start()
    assert not bench.directory.was_clean
    assert bench.directory.previous_broker_epoch == -1
    bench.stop()


def test_checkpoints_are_written_when_something_moved(tmp_path):
    bench = Workbench(tmp_path)
    put(bench.log, 1)
    bench.log.sync()
    bench.directory.checkpoint()
    path = tmp_path / "recovery-point-offset-checkpoint"
    assert path.read_text() == "0\n1\nt 0 1\n"
    path.unlink()
    bench.directory.checkpoint()
    assert not path.exists()
    put(bench.log, 2)
    bench.log.sync()
    bench.directory.checkpoint()
    assert path.read_text() == "0\n1\nt 0 2\n"
    bench.directory.write_high_watermarks({("t", 0): 2})
    assert (tmp_path / "replication-offset-checkpoint").read_text() == "0\n1\nt 0 2\n"
    assert bench.directory.read_high_watermarks() == {("t", 0): 2}
    bench.stop()


def test_a_checkpoint_that_names_nothing_is_a_file_all_the_same(tmp_path):
    bench = Workbench(tmp_path)
    bench.directory.checkpoint()
    path = tmp_path / "log-start-offset-checkpoint"
    assert path.read_text() == "0\n0\n"
    path.unlink()
    bench.directory.checkpoint()
    assert not path.exists()  # nothing has moved
    bench.stop()


def test_a_dormant_log_is_checkpointed_without_being_woken(tmp_path):
    bench = Workbench(tmp_path)
    for n in range(5):
        put(bench.log, n)
    bench.log.raise_start_offset(3)
    bench.restart()
    bench.restart()
    assert bench.log.is_dormant
    assert bench.log.start_offset == 3
    assert bench.log.recovery_point == 5
    bench.stop()


class CountingDisk(FaultyDisk):
    """A disk that writes down its syncs, and may be without the one of a whole file system."""

    def __init__(self, *, whole=True):
        super().__init__()
        self.whole = whole

    def sync_dir(self, path):
        self.check("sync", path)
        super().sync_dir(path)

    def sync_filesystem(self, path):
        self.check("sync_filesystem", path)
        return self.whole and super().sync_filesystem(path)

    def synced(self, path):
        return {os.path.relpath(synced, path) for what, synced in self.calls if what == "sync"}


def dirty_directory(path, disk, count):
    directory = LogDirectory(str(path), disk, SeededEntropy(1), lambda text: None)
    directory.open()
    directory.load(lambda topic: LogConfig())
    for n in range(count):
        put(directory.create_log("t", n, TOPIC_ID, LogConfig()), n)
    directory.create_log("empty", 0, TOPIC_ID, LogConfig()).make()
    return directory


@pytest.mark.parametrize(("count", "whole"), [(3, True), (30, False)], ids=["few", "no such call"])
def test_a_clean_stop_syncs_every_file(tmp_path, count, whole):
    disk = CountingDisk(whole=whole)
    dirty_directory(tmp_path, disk, count).close()
    for n in range(count):
        expected = {f"t-{n}", *(f"t-{n}/{name}" for name in os.listdir(tmp_path / f"t-{n}"))}
        assert expected <= disk.synced(tmp_path)
    assert not [path for path in disk.synced(tmp_path) if path.startswith("empty")], (
        "nothing in it can be lost"
    )


def test_a_clean_stop_of_many_logs_syncs_once(tmp_path):
    disk = CountingDisk()
    directory = dirty_directory(tmp_path, disk, 30)
    disk.calls.clear()
    directory.close()
    assert ("sync_filesystem", str(tmp_path)) in disk.calls
    assert disk.synced(tmp_path) <= {"."}
    # Making files is dearer than writing to them, so a stop makes none in the logs' directories.
    opened = [path for what, path in disk.calls if what == "open"]
    assert not [path for path in opened if path.endswith((".snapshot", ".tmp"))]
    assert all(log.recovery_point == 1 for key, log in directory.logs.items() if key[0] == "t")


def test_a_failed_sync_of_the_file_system_leaves_no_marker(tmp_path):
    disk = CountingDisk()
    directory = dirty_directory(tmp_path, disk, 30)
    disk.fail("sync_filesystem")
    with pytest.raises(OSError, match="EIO"):
        directory.close()
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert all(log.recovery_point == 0 for log in directory.logs.values())


def test_the_quorums_log_is_left_alone(tmp_path):
    (tmp_path / "__cluster_metadata-0").mkdir()
    (tmp_path / "__cluster_metadata-0" / "00000000000000000000.log").write_bytes(b"not to be cut")
    directory = open_directory(tmp_path)
    assert directory.logs == {}
    assert (tmp_path / "__cluster_metadata-0" / "00000000000000000000.log").read_bytes() == b"not to be cut"
    directory.close()


def test_a_deleted_log_goes_in_two_steps(tmp_path):
    bench = Workbench(tmp_path, file_delete_delay_ms=1000)
    put(bench.log, 1)
    bench.directory.delete_log(bench.log)
    (name,) = [name for name in os.listdir(tmp_path) if name.endswith("-delete")]
    assert name.startswith("t-0.")
    assert bench.directory.logs == {}
    assert read_all(bench.log) == [(0, b"1")]
    bench.log.rest()
    fresh = bench.directory.create_log("t", 0, TOPIC_ID, bench.config)
    assert fresh.end_offset == 0
    bench.directory.remove_doomed(NOW, InlineWorker())
    bench.directory.remove_doomed(NOW + 1000, InlineWorker())
    assert not (tmp_path / name).exists()
    assert put(fresh, 2).base_offset == 0
    assert (tmp_path / "t-0").exists()
    bench.stop()


def test_a_file_that_cannot_be_removed_keeps_no_other_from_going(tmp_path, monkeypatch):
    bench = Workbench(tmp_path)
    for name in "abc":
        (tmp_path / name).mkdir()
        bench.directory.doom([f"{tmp_path}/{name}"], 0)
    real = RealDisk.remove_tree

    def remove_tree(self, path):
        if path.endswith("/a"):
            raise OSError(errno.EACCES, "not allowed")
        real(self, path)

    with monkeypatch.context() as patch:
        patch.setattr(RealDisk, "remove_tree", remove_tree)
        for tries in (1, 2):
            bench.directory.remove_doomed(NOW, InlineWorker())
            assert len([said for said in bench.warnings if "not allowed" in said]) == tries
        assert [name for name in "abc" if (tmp_path / name).exists()] == ["a"]
    bench.directory.remove_doomed(NOW, InlineWorker())
    assert not (tmp_path / "a").exists()
    bench.stop()


def test_what_a_crash_left_of_a_deletion_goes_at_the_next_start(tmp_path):
    bench = Workbench(tmp_path)
    gone = bench.directory.create_log("gone", 0, TOPIC_ID, bench.config)
    put(gone, 1)
    bench.directory.delete_log(gone)
    (tmp_path / "odd-0.abc-stray").mkdir()
    bench.restart()
    assert list(bench.directory.logs) == [("t", 0)]
    bench.directory.remove_doomed(NOW, InlineWorker())
    assert [name for name in os.listdir(tmp_path) if name.startswith("gone")] == []
    assert (tmp_path / "odd-0.abc-stray").exists()
    bench.stop()


def test_a_copy_takes_the_place_of_a_log(tmp_path):
    bench = Workbench(tmp_path / "one")
    other = Workbench(tmp_path / "two").directory
    put(bench.log, 1)
    other.delete_log(other.logs["t", 0])
    copy = other.create_log("t", 0, TOPIC_ID, bench.config, future=True)
    copy.append_as_follower(bench.log.read(0, 1 << 20, 1))
    assert ("t", 0) not in other.logs
    other.close(clean=True)
    other.open()
    other.futures.clear()
    other.load(lambda topic: bench.config)
    assert read_all(other.futures["t", 0]) == [(0, b"1")]
    promoted = other.promote_future("t", 0)
    assert promoted is other.logs["t", 0]
    assert promoted.path == f"{tmp_path}/two/t-0"
    assert put(promoted, 2).base_offset == 1
    promoted.close()
    assert sorted(os.listdir(tmp_path / "two" / "t-0"))[-1] == "partition.metadata"
    bench.stop()
    other.close()


def test_few_descriptors_for_many_logs(tmp_path):
    directory = open_directory(tmp_path)
    logs = [directory.create_log("t", n, TOPIC_ID, LogConfig(segment_bytes=300)) for n in range(50)]

    def open_files():
        return len(os.listdir("/proc/self/fd"))

    before = open_files()
    for log in logs:
        for n in range(10):
            put(log, n)
    directory.rest_idle()
    directory.rest_idle()
    assert open_files() <= before
    for log in logs:
        assert len(read_all(log)) == 10
    assert open_files() <= before + 50 + 64
    directory.rest_idle()
    assert open_files() <= before + 64
    directory.close()
    assert open_files() <= before + 64


class AskedDisk(RealDisk):
    """Counts what a start asks of the disk, by the name of the question."""

    def __init__(self):
        super().__init__()
        self.asked = Counter()

    def __getattribute__(self, name):
        if not name.startswith("_") and name != "asked":
            self.asked[name] += 1
        return super().__getattribute__(name)


def test_two_thousand_logs_start_without_a_look_into_them(tmp_path):
    directory = open_directory(tmp_path)
    for n in range(2000):
        directory.create_log("many", n, TOPIC_ID, LogConfig())
    directory.make_some(2000)
    for n in range(0, 2000, 100):
        put(directory.logs["many", n], n)
    directory.close()
    disk = AskedDisk()
    directory = open_directory(tmp_path, disk)
    assert len(directory.logs) == 2000
    assert all(log.is_dormant for log in directory.logs.values())
    listed = disk.asked.total()
    assert listed < 100, disk.asked
    ends = [directory.logs["many", n].end_offset for n in range(2000)]
    assert ends == [0 if n % 100 else 1 for n in range(2000)]
    assert disk.asked.total() - listed < 2000 * 12, disk.asked
    directory.close()


@pytest.mark.parametrize("free_bytes", [0, 1 << 40])
def test_a_start_without_room_removes_what_is_deleted_first(tmp_path, monkeypatch, free_bytes):
    bench = Workbench(tmp_path)
    gone = bench.directory.create_log("gone", 0, TOPIC_ID, bench.config)
    put(gone, 1)
    bench.directory.delete_log(gone)
    bench.directory.close(clean=True)
    monkeypatch.setattr(RealDisk, "free_bytes", lambda disk, path: free_bytes)
    bench.directory.open()
    left = [name for name in os.listdir(tmp_path) if name.startswith("gone")]
    assert len(left) == (0 if free_bytes == 0 else 1)
    assert (tmp_path / "t-0").exists()
    bench.directory.close(clean=False)
