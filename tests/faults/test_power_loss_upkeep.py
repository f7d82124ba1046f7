"""The power goes while the broker rearranges its files: a compaction, a move to another directory, retention."""

import random
import struct
import time
from functools import partial

import pytest

from ottla.wire.batch import read_records
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse
from ottla.wire.record import Record
from tests.faults.by_hand import Hand, batch, hand
from tests.faults.forgetful_disk import ForgetfulDisk
from tests.faults.node_thread import NodeThread
from tests.faults.seeds import count, seeded
from tests.faults.test_power_loss_steps import Fuse
from tests.peers.deadline import eventually

KEYS = 12
MIB = 1 << 20


@pytest.mark.parametrize(
    "losses",
    [
        pytest.param(count("OTTLA_KILLS", 12), id="short"),
        pytest.param(count("OTTLA_KILLS", 300), id="soak", marks=pytest.mark.long),
    ],
)
def test_compaction_loses_no_key(losses: int) -> None:
    """The newest acknowledged value of a key is there, or a newer one, however often the power goes."""
    chance = seeded(__file__, OTTLA_KILLS=losses)
    disk = ForgetfulDisk()
    runner = NodeThread(
        disk, {"log.cleaner.backoff.ms": "5", "log.flush.offset.checkpoint.interval.ms": "20"}
    ).format()
    newest: dict[bytes, tuple[int, int]] = {}  # key -> number, offset
    number = 0
    cleaned = 0
    for turn in range(losses):
        runner.start()
        with hand(runner.port) as client:
            if turn == 0:
                made = client.create_topic(
                    "c", 1, cleanup_policy="compact", segment_bytes=MIB, min_cleanable_dirty_ratio="0.0"
                )
                assert made is ErrorCode.NONE
            check_keys(client, newest)
            for _ in range(chance.randrange(20, 60)):
                key = b"key-%d" % chance.randrange(KEYS)
                data = batch(b"%d " % number + chance.randbytes(60_000), key=key)
                code, offset = client.produce("c", data)
                assert code is ErrorCode.NONE
                newest[key] = (number, offset)
                number += 1
        time.sleep(chance.uniform(0, 0.05))
        cleaned += runner.call(lambda node: node.table.by_name("c", 0).log.size_bytes) < number * 50_000
        left = disk.power_loss(chance)
        runner.abandon()
        runner.disk = disk = left
    with runner, hand(runner.port) as client:
        check_keys(client, newest)
    assert cleaned > losses // 2, "nothing has been compacted"
    assert not runner.errors


def check_keys(client: Hand, newest: dict[bytes, tuple[int, int]]) -> None:
    found: dict[bytes, tuple[int, int]] = {}
    data = client.read_all("c")
    position = 0
    last_offset = -1
    while position < len(data):
        for record in read_records(data, position):
            assert record.offset > last_offset, "offsets do not grow"
            last_offset = record.offset
            assert record.key is not None and record.value is not None
            found[bytes(record.key)] = (int(bytes(record.value).split(b" ", 1)[0]), record.offset)
        position += struct.unpack_from(">i", data, position + 8)[0] + 12
    for key, told in newest.items():
        assert key in found, f"{key!r} is lost"
        assert found[key] == told or found[key][0] > told[0], (
            f"{key!r} is {found[key]}, acknowledged was {told}"
        )


ONE, OTHER = "/one", "/other"
MOVE = {
    "log.dirs": f"{ONE},{OTHER}",
    "log.flush.offset.checkpoint.interval.ms": "10",
    "replica.high.watermark.checkpoint.interval.ms": "10",
    "log.segment.delete.delay.ms": "1",
}


@pytest.mark.parametrize(
    "every",
    [pytest.param(count("OTTLA_EVERY", 10), id="short"), pytest.param(1, id="soak", marks=pytest.mark.long)],
)
def test_a_move_between_directories_loses_nothing(every: int) -> None:
    """The power goes at the n-th step of a move: all records are there once, in one directory or the other."""
    chance = seeded(__file__, OTTLA_EVERY=every)
    steps = chance.randrange(every)
    while move_with(steps, chance):
        steps += every
    assert steps > 20, "a move does not take that many steps any more"


def move_with(steps: int, chance: random.Random) -> bool:
    disk = ForgetfulDisk()
    runner = NodeThread(disk, MOVE).format().start()
    told: dict[int, bytes] = {}
    fuse = Fuse(disk, steps)
    try:
        with hand(runner.port, seconds_max=5) as client:
            assert client.create_topic("m", segment_bytes=MIB) is ErrorCode.NONE
            for turn in range(6):
                write(client, told, turn)
            home = ONE if disk.is_dir(f"{ONE}/m-0") else OTHER
            target = OTHER if home == ONE else ONE
            disk.before = fuse
            topic = AlterReplicaLogDirsRequest.AlterReplicaLogDir.AlterReplicaLogDirTopic(
                name="m", partitions=[0]
            )
            place = AlterReplicaLogDirsRequest.AlterReplicaLogDir(path=target, topics=[topic])
            answer = client.connection.ask(
                AlterReplicaLogDirsRequest(dirs=[place]), AlterReplicaLogDirsResponse, 2
            )
            assert answer.results[0].partitions[0].error_code == 0
            for turn in range(6, 9):
                write(client, told, turn)
            eventually(
                lambda: bool(fuse.blown) or (disk.is_dir(f"{target}/m-0") and not disk.is_dir(f"{home}/m-0"))
            )
    except Exception:
        if not fuse.blown:
            raise
    runner.abandon()
    disk.before = None
    what = f"power gone at step {steps}, {fuse.blown}"
    runner.disk = disk.power_loss(chance) if fuse.blown else disk
    runner.errors.clear()
    with runner, hand(runner.port, seconds_max=5) as client:
        data = client.read_all("m")
        offsets = [record.offset for record in every_record(data)]
        assert offsets == list(range(len(offsets))), what
        for offset, value in told.items():
            assert offset < len(offsets) and value in data, f"{what}: offset {offset} is lost"
        assert client.produce("m", batch(b"more")) == (ErrorCode.NONE, len(offsets)), what
    assert not runner.errors, (what, runner.errors)
    return bool(fuse.blown)


def test_a_move_under_load_is_quiet() -> None:
    """Moves to and fro while records are written and synced: nobody is refused, nothing goes offline.

    Nearly every record begins a segment, so that the names in the directory are synced again and again, and each
    move meets a sync that takes its time.
    """
    disk = ForgetfulDisk()
    runner = NodeThread(disk, MOVE).format().start()
    told: dict[int, bytes] = {}
    held: set[tuple[int, str]] = set()
    turn = 0

    def dawdle(what: str, path: str) -> None:
        if what == "sync" and path.endswith("/m-0") and (turn, path) not in held:
            held.add((turn, path))
            deadline = time.monotonic() + 0.05
            while disk.is_dir(path) and time.monotonic() < deadline:
                time.sleep(0.001)

    try:
        with hand(runner.port) as client, hand(runner.port) as mover:
            assert client.create_topic("m", segment_ms=1) is ErrorCode.NONE
            disk.before = dawdle
            for turn in range(20):
                home, target = (ONE, OTHER) if disk.is_dir(f"{ONE}/m-0") else (OTHER, ONE)
                topic = AlterReplicaLogDirsRequest.AlterReplicaLogDir.AlterReplicaLogDirTopic(
                    name="m", partitions=[0]
                )
                place = AlterReplicaLogDirsRequest.AlterReplicaLogDir(path=target, topics=[topic])
                mover.connection.ask(AlterReplicaLogDirsRequest(dirs=[place]), AlterReplicaLogDirsResponse, 2)
                while disk.is_dir(f"{home}/m-0"):
                    value = b"turn %d" % turn
                    code, offset = client.produce("m", batch(value))
                    assert code is ErrorCode.NONE, (turn, runner.reports)
                    told[offset] = value
            offsets = [record.offset for record in every_record(client.read_all("m"))]
            assert offsets == list(range(len(told)))
        assert not any("offline" in report for report in runner.reports), runner.reports
        assert not runner.errors, runner.errors
    finally:
        runner.abandon()


def test_a_copy_with_a_hole_is_not_taken() -> None:
    """A power loss that took a segment from the middle of an unfinished copy costs nothing but the copy."""
    disk = ForgetfulDisk()
    runner = NodeThread(disk, MOVE).format().start()
    halfway: list[ForgetfulDisk] = []

    def watch(what: str, path: str) -> None:
        if what == "create" and path.endswith("-future/00000000000000000004.log"):
            halfway.append(disk.copy())

    try:
        with hand(runner.port) as client:
            assert client.create_topic("m", segment_bytes=MIB) is ErrorCode.NONE
            for turn in range(6):
                write(client, {}, turn)
            target = OTHER if disk.is_dir(f"{ONE}/m-0") else ONE
            disk.before = watch
            topic = AlterReplicaLogDirsRequest.AlterReplicaLogDir.AlterReplicaLogDirTopic(
                name="m", partitions=[0]
            )
            place = AlterReplicaLogDirsRequest.AlterReplicaLogDir(path=target, topics=[topic])
            client.connection.ask(AlterReplicaLogDirsRequest(dirs=[place]), AlterReplicaLogDirsResponse, 2)
            eventually(lambda: disk.is_dir(f"{target}/m-0"))
    finally:
        runner.abandon()
    for base_offset in (0, 2):
        runner.disk = left = halfway[0].copy()
        (path,) = [each for each in left.files() if each.endswith(f"-future/{base_offset:020d}.log")]
        left.put(path, b"")
        with runner, hand(runner.port) as client:
            eventually(partial(has_no_copy, left, target))
            offsets = [record.offset for record in every_record(client.read_all("m"))]
            assert offsets == [0, 1, 2, 3, 4, 5], f"segment {base_offset} of the copy was empty"


def has_no_copy(disk: ForgetfulDisk, directory: str) -> bool:
    return not any("-future" in name for name in disk.list(directory))


def write(client: Hand, told: dict[int, bytes], turn: int) -> None:
    value = b"turn %d " % turn + bytes(400_000)
    code, offset = client.produce("m", batch(value))
    assert code is ErrorCode.NONE, code
    told[offset] = value


def every_record(data: bytes) -> list[Record]:
    found: list[Record] = []
    position = 0
    while position < len(data):
        found += read_records(data, position)
        position += struct.unpack_from(">i", data, position + 8)[0] + 12
    return found
