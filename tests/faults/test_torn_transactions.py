"""A torn transaction index or producer snapshot: readers are still told of every aborted transaction."""

import pytest

from ottla.log.config import LogConfig
from ottla.log.directory import LogDirectory
from ottla.log.log import Log
from ottla.wire.batch import build_batch
from ottla.wire.control import end_transaction_batch
from ottla.wire.record import Record
from ottla.world.entropy import SeededEntropy
from tests.faults.forgetful_disk import ForgetfulDisk
from tests.faults.test_torn import damages

PATH = "/data/spoken-0"
NOW_MS = 1_700_000_000_000
ROUNDS = 12
ENTRY = 34  # bytes of an aborted transaction in the index


def log_on(disk: ForgetfulDisk) -> Log:
    home = LogDirectory("/data", disk, SeededEntropy(1), lambda _: None)
    return Log(home, disk, PATH, "spoken", 0, LogConfig(segment_bytes=1400, index_interval_bytes=200))


def written() -> tuple[ForgetfulDisk, list[tuple[int, int]], int]:
    """A log of several segments, two producers taking turns, every other transaction aborted, the last one open."""
    disk = ForgetfulDisk()
    disk.make_dirs(PATH)
    log = log_on(disk)
    log.create([])
    sequences = {7: 0, 8: 0}
    for turn in range(ROUNDS):
        for producer_id in sequences:
            log.append(transactional(producer_id, sequences[producer_id]), 0, NOW_MS)
            sequences[producer_id] += 1
        for producer_id in sequences:
            marker = end_transaction_batch(
                commit=(turn + producer_id) % 2 == 0,
                producer_id=producer_id,
                producer_epoch=0,
                coordinator_epoch=0,
                timestamp_ms=NOW_MS,
            )
            log.append(marker, 0, NOW_MS, from_client=False)
    log.append(transactional(7, sequences[7]), 0, NOW_MS)
    assert len(log.segments) > 3
    return disk, log.aborted_transactions(0, log.end_offset), log.end_offset


def visible(path: str, damage: bytes | None) -> bool:
    """Whether a file that was whole once shows by itself that it is not any more.

    A transaction index need not be there, nor have any particular length: that it lacks whole entries does not show. A
    crash does not do that to a synced file.
    """
    if not path.endswith(".txnindex"):
        return True
    return damage is not None and (len(damage) % ENTRY != 0 or bytes(ENTRY) in damage)


def transactional(producer_id: int, sequence: int) -> bytearray:
    records = [Record(0, NOW_MS, b"k", b"v" * 20, ())]
    return build_batch(
        records, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True
    )


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
@pytest.mark.parametrize("suffix", [".txnindex", ".snapshot", ".index", ".timeindex"])
def test_aborted_transactions_are_not_forgotten(suffix: str, clean: bool) -> None:
    disk, aborted, end_offset = written()
    assert len(aborted) == ROUNDS
    if clean:
        log = log_on(disk)
        log.open(clean=False)
        log.close(clean=True)
    for path in [path for path in disk.files(PATH) if path.endswith(suffix)]:
        for torn_to in damages(disk.read_bytes(path)):
            if clean and not visible(path, torn_to):
                continue
            left = disk.copy()
            if torn_to is None:
                left.remove(path)
            else:
                left.put(path, torn_to)
            log = log_on(left)
            log.open(clean=clean, recovery_point=end_offset if clean else 0)
            what = f"{path} {torn_to!r}"
            assert log.end_offset == end_offset, what
            assert log.aborted_transactions(0, end_offset) == aborted, what
            assert log.first_unstable_offset == end_offset - 1, what


@pytest.mark.parametrize("suffix", [".txnindex", ".snapshot", ".index", ".timeindex"])
def test_damage_below_the_recovery_point_is_mended(suffix: str) -> None:
    """After a kill the segments below the recovery point are not read again, unless a file beside them is torn."""
    disk, aborted, end_offset = written()
    base_offsets = [segment.base_offset for segment in opened(disk.copy(), 0).segments]
    for path in [path for path in disk.files(PATH) if path.endswith(suffix)]:
        for torn_to in damages(disk.read_bytes(path)):
            if not visible(path, torn_to):
                continue
            left = disk.copy()
            if torn_to is None:
                left.remove(path)
            else:
                left.put(path, torn_to)
            log = opened(left, base_offsets[-1])
            assert log.end_offset == end_offset
            assert log.aborted_transactions(0, end_offset) == aborted, f"{path} {torn_to!r}"
            assert log.first_unstable_offset == end_offset - 1, f"{path} {torn_to!r}"


def opened(disk: ForgetfulDisk, recovery_point: int) -> Log:
    log = log_on(disk)
    log.open(clean=False, recovery_point=recovery_point)
    return log
