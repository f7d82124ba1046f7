"""The disk says it could not keep what it was given: no acknowledgement, no second try, and the other disks go on.

After a failed fsync the kernel may have dropped the data and call the next fsync a success (Rebello et al., ATC 2020).
"""

import errno
import threading
from collections.abc import Iterator

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from tests.faults.by_hand import Hand, batch, hand
from tests.faults.forgetful_disk import ForgetfulDisk
from tests.faults.node_thread import NodeThread
from tests.peers.connection import Disconnected
from tests.peers.deadline import eventually

GOOD, BAD, METADATA = "/good", "/bad", "/metadata"
SETTINGS = {"log.dirs": f"{GOOD},{BAD}", "metadata.log.dir": METADATA, "ottla.flush": "ack"}
FAILED = ErrorCode.KAFKA_STORAGE_ERROR
PARTITIONS = 6


class Breakage:
    """A hook that fails operations below a directory, once told to, and writes down every one of them."""

    def __init__(self, under: str, *kinds: str) -> None:
        self.broken = False
        self.met: list[str] = []
        self.hold: threading.Event | None = None
        self._under = under
        self._kinds = kinds

    def __call__(self, what: str, path: str) -> None:
        if self.broken and what in self._kinds and path.startswith(self._under):
            self.met.append(f"{what} {path}")
            if self.hold is not None:
                self.hold.wait(10)
            raise OSError(errno.EIO, "Input/output error", path)


@pytest.fixture
def runner() -> Iterator[NodeThread]:
    running = NodeThread(ForgetfulDisk(), SETTINGS).format().start()
    try:
        yield running
    finally:
        running.abandon()


def break_down(runner: NodeThread, under: str, *kinds: str) -> Breakage:
    breakage = Breakage(under, *kinds)
    assert isinstance(runner.disk, ForgetfulDisk)
    runner.disk.before = breakage
    return breakage


def spread(runner: NodeThread, client: Hand) -> tuple[list[int], list[int]]:
    """Make a topic over both directories, write to it, and return the partitions in each."""
    assert client.create_topic("t", PARTITIONS) is ErrorCode.NONE
    for partition in range(PARTITIONS):
        assert client.produce("t", batch(b"before"), partition=partition) == (ErrorCode.NONE, 0)
    homes = {
        partition: next(each for each in (GOOD, BAD) if runner.disk.is_dir(f"{each}/t-{partition}"))
        for partition in range(PARTITIONS)
    }
    good = [partition for partition, home in homes.items() if home == GOOD]
    bad = [partition for partition, home in homes.items() if home == BAD]
    assert good and bad
    return good, bad


def offline(runner: NodeThread) -> list[str]:
    found: list[str] = runner.call(lambda node: [each.path for each in node.directories if each.offline])
    return found


def check_the_rest(runner: NodeThread, client: Hand, good: list[int], bad: list[int]) -> None:
    """The failed directory refuses everything, the other one nothing."""
    assert offline(runner) == [BAD]
    for partition in bad:
        assert client.produce("t", batch(b"after"), partition=partition)[0] is FAILED
        assert client.fetch("t", 0, partition=partition)[0] is FAILED
    for partition in good:
        code, base_offset = client.produce("t", batch(b"after"), partition=partition)
        assert code is ErrorCode.NONE
        assert client.end_offset("t", partition=partition) == base_offset + 1
    described = client.connection.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, 4).results
    assert {each.log_dir: each.error_code for each in described} == {GOOD: 0, BAD: FAILED}
    assert not runner.gave_up
    assert not runner.errors


def check_restart(runner: NodeThread, good: list[int], bad: list[int]) -> None:
    """Stopped and started on a disk that has been mended, all acknowledged records are there."""
    assert isinstance(runner.disk, ForgetfulDisk)
    runner.stop()
    runner.disk.before = None
    assert runner.disk.exists(f"{GOOD}/.kafka_cleanshutdown")
    assert not runner.disk.exists(f"{BAD}/.kafka_cleanshutdown")
    with runner, hand(runner.port) as client:
        for partition in range(PARTITIONS):
            assert b"before" in client.read_all("t", partition=partition)
        for partition in good:
            assert b"after" in client.read_all("t", partition=partition)
        for partition in bad:
            assert client.produce("t", batch(b"mended"), partition=partition)[0] is ErrorCode.NONE


def test_a_failed_fsync_takes_the_directory_offline(runner: NodeThread) -> None:
    with hand(runner.port) as client:
        good, bad = spread(runner, client)
        breakage = break_down(runner, BAD, "sync")
        breakage.broken = True
        for partition in range(PARTITIONS):
            client.send_produce("t", batch(b"meanwhile"), partition=partition)
        for partition in range(PARTITIONS):
            code, _ = client.receive_produce()
            assert code is (FAILED if partition in bad else ErrorCode.NONE), partition
        check_the_rest(runner, client, good, bad)
    check_restart(runner, good, bad)


def test_a_failed_fsync_is_never_tried_again(runner: NodeThread) -> None:
    """Whoever was appended while the sync that failed was under way is refused, not synced once more."""
    with hand(runner.port) as client, hand(runner.port) as other:
        good, bad = spread(runner, client)
        partition = bad[0]
        breakage = break_down(runner, BAD, "sync")
        breakage.hold = threading.Event()
        breakage.broken = True
        client.send_produce("t", batch(b"first"), partition=partition)
        eventually(lambda: len(breakage.met) == 1)
        for _ in range(5):
            other.send_produce("t", batch(b"second"), partition=partition)
        eventually(lambda: runner.call(lambda node: node.table.by_name("t", partition).log.end_offset) == 7)
        breakage.hold.set()
        assert client.receive_produce()[0] is FAILED
        for _ in range(5):
            assert other.receive_produce()[0] is FAILED
        check_the_rest(runner, client, good, bad)
    check_restart(runner, good, bad)
    assert len(breakage.met) == 1, breakage.met


@pytest.mark.parametrize("name", ["recovery-point-offset-checkpoint", "replication-offset-checkpoint"])
def test_a_failed_fsync_of_a_checkpoint_counts_as_well(name: str) -> None:
    often = {
        "log.flush.offset.checkpoint.interval.ms": "20",
        "replica.high.watermark.checkpoint.interval.ms": "20",
    }
    runner = NodeThread(ForgetfulDisk(), SETTINGS | often).format().start()
    try:
        with hand(runner.port) as client:
            good, bad = spread(runner, client)
            break_down(runner, f"{BAD}/{name}", "sync").broken = True
            client.send_produce("t", batch(b"meanwhile"), partition=bad[0])
            client.receive_produce()
            eventually(lambda: offline(runner) == [BAD])
            check_the_rest(runner, client, good, bad)
        check_restart(runner, good, bad)
    finally:
        runner.abandon()


@pytest.mark.parametrize("kinds", [("append",), ("append", "truncate")], ids=["", "and cannot be cut back"])
def test_a_failed_write_takes_the_directory_offline(runner: NodeThread, kinds: tuple[str, ...]) -> None:
    with hand(runner.port) as client:
        good, bad = spread(runner, client)
        break_down(runner, BAD, *kinds).broken = True
        assert client.produce("t", batch(b"meanwhile"), partition=bad[0])[0] is FAILED
        check_the_rest(runner, client, good, bad)
    check_restart(runner, good, bad)


def test_a_failed_read_takes_the_directory_offline(runner: NodeThread) -> None:
    """As in Kafka. Whoever reads other partitions, even with the same request, is not troubled."""
    with hand(runner.port) as client:
        good, bad = spread(runner, client)
        # The newest batch is in memory; the one before it is not.
        assert client.produce("t", batch(b"newest"), partition=bad[0]) == (ErrorCode.NONE, 1)
        break_down(runner, BAD, "read").broken = True
        assert client.fetch("t", 1, partition=bad[0])[0] is ErrorCode.NONE
        assert client.fetch("t", 0, partition=bad[0])[0] is FAILED
        check_the_rest(runner, client, good, bad)
    check_restart(runner, good, bad)


def test_waiting_readers_are_told(runner: NodeThread) -> None:
    with hand(runner.port) as client, hand(runner.port) as reader:
        _, bad = spread(runner, client)
        part = FetchRequest.FetchTopic.FetchPartition(
            partition=bad[0], fetch_offset=1, partition_max_bytes=1 << 20
        )
        request = FetchRequest(
            max_wait_ms=60_000, min_bytes=1, topics=[FetchRequest.FetchTopic(topic="t", partitions=[part])]
        )
        number = reader.connection.send(request, 12)
        break_down(runner, BAD, "sync").broken = True
        assert client.produce("t", batch(b"meanwhile"), partition=bad[-1])[0] is FAILED
        answer = reader.connection.receive(FetchResponse, 12, number)
        assert answer.responses[0].partitions[0].error_code == FAILED


def test_a_failed_fsync_of_the_metadata_log_ends_the_node(runner: NodeThread) -> None:
    with hand(runner.port, seconds_max=5) as client:
        spread(runner, client)
        breakage = break_down(runner, METADATA, "sync")
        breakage.broken = True
        topic = CreateTopicsRequest.CreatableTopic(name="u", num_partitions=1, replication_factor=1)
        try:
            answer = client.connection.ask(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse, 7)
        except Disconnected:
            pass
        else:
            assert answer.topics[0].error_code == FAILED
        eventually(lambda: bool(runner.gave_up))
        assert len(breakage.met) == 1
        runner.abandon()
        assert not runner.disk.exists(f"{METADATA}/.kafka_cleanshutdown")
        assert len(breakage.met) == 1, breakage.met
        assert not runner.errors


def test_the_last_directory_ends_the_node() -> None:
    runner = NodeThread(ForgetfulDisk(), {"ottla.flush": "ack"}).format().start()
    with hand(runner.port) as client:
        assert client.create_topic("t") is ErrorCode.NONE
        break_down(runner, "/data/t-0", "sync").broken = True
        assert client.produce("t", batch(b"lost"))[0] is FAILED
    eventually(lambda: bool(runner.gave_up))
    runner.abandon()
    assert not runner.errors
