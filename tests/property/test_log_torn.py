"""Every prefix of a torn segment recovers to the longest valid prefix, and what stands beside it matches."""

import os
import random
import shutil

import pytest

from ottla.log.config import LogConfig
from ottla.log.loading import load
from ottla.wire.batch import scan
from ottla.world.disk import RealDisk
from tests.unit.log.workbench import NOW, Workbench, put, put_from, read_all

FIRST = "00000000000000000000.log"
STAMPED_BYTES = 16


def write_log(path, *, count, roll_at=None):
    """Write `count` batches of two records, most of them idempotent, under a few leaders; then stop as kill -9 does."""
    bench = Workbench(path, index_interval_bytes=300)
    for n in range(count):
        if n == roll_at:
            bench.log.roll()
        if n % 3:
            put_from(bench.log, n % 3, n // 3 * 2, n, n, timestamp=NOW + n, epoch=n // 20)
        else:
            put(bench.log, n, n, timestamp=NOW + n, epoch=n // 20)
    bench.stop(clean=False)
    return bench


def beside(segment, producers, epochs):
    """What recovery has to rebuild: indexes, timestamps, producers and epochs."""
    return (
        bytes(segment.offset_index._entry_bytes()),
        bytes(segment.time_index._entry_bytes()),
        (segment.max_timestamp, segment.max_timestamp_offset),
        {
            entry.producer_id: (entry.epoch, entry.next_sequence, tuple(entry.batches))
            for entry in producers.entries.values()
        },
        epochs.entries,
    )


def test_every_prefix_of_the_last_segment(tmp_path):
    count = 64
    write_log(tmp_path / "whole", count=count)
    content = (tmp_path / "whole" / "t-0" / FIRST).read_bytes()
    ends = [position + header.size for position, header in scan(content)]
    wanted = []
    for whole in range(count + 1):
        log = write_log(tmp_path / f"expected-{whole}", count=whole).log
        log.segments[-1].retire()
        wanted.append(beside(log.segments[-1], log._producers, log._epochs))
    target = tmp_path / "torn"
    target.mkdir()
    for size in range(len(content) + 1):
        # The indexes of the prefix before are left lying about, to be taken no notice of.
        (target / FIRST).write_bytes(content[:size])
        whole = sum(end <= size for end in ends)
        warnings = []
        loaded = load(
            RealDisk(),
            str(target),
            LogConfig(index_interval_bytes=300),
            clean=False,
            start_offset=0,
            recovery_point=0,
            warn=warnings.append,
        )
        assert loaded.end_offset == 2 * whole
        assert os.path.getsize(target / FIRST) == ([0, *ends])[whole]
        assert bool(warnings) == (size not in (0, *ends))
        assert beside(loaded.segments[-1], loaded.producers, loaded.epochs) == wanted[whole]
        loaded.segments[-1].rest()


@pytest.mark.parametrize("seed", range(40))
def test_random_damage_above_the_recovery_point(tmp_path, seed):
    """Flip a bit, or overwrite all that follows: what is read back ends where the damage begins."""
    chance = random.Random(seed)
    bench = write_log(tmp_path, count=60, roll_at=chance.randrange(1, 59))
    path = tmp_path / "t-0" / chance.choice([n for n in os.listdir(tmp_path / "t-0") if n.endswith(".log")])
    original = path.read_bytes()
    batches = list(scan(original))
    position, damaged = chance.choice(batches)
    # Base offset and leader epoch lie outside the CRC; a flipped bit there goes unnoticed, in Kafka too.
    at = position + chance.randrange(STAMPED_BYTES, damaged.size)
    content = bytearray(original)
    if chance.random() < 0.5:
        content[at] ^= 1 << chance.randrange(8)
    else:
        content[at:] = chance.choice([bytes, chance.randbytes])(len(content) - at)
    if content == original:
        content[at] ^= 1
    path.write_bytes(content)
    log = bench.start()
    assert log.end_offset == damaged.base_offset
    assert read_all(log) == [(n, b"%d" % (n // 2)) for n in range(damaged.base_offset)]
    assert put(log, b"next").base_offset == damaged.base_offset


def test_a_damaged_file_beside_the_batches_never_fails_the_start(tmp_path):
    """Empty, tear, fill with noise, pad or remove each of them: the log still holds every record."""
    bench = Workbench(tmp_path / "origin", index_interval_bytes=200, segment_bytes=2000)
    for n in range(60):
        put_from(bench.log, 1, n, n, timestamp=NOW + n, epoch=n // 20)
    bench.stop(clean=True)
    chance = random.Random(1)
    paths = sorted(  # or the noise each one gets would depend on the order of the directory
        os.path.relpath(os.path.join(folder, name), tmp_path / "origin")
        for folder, _, names in os.walk(tmp_path / "origin")
        for name in names
        if not name.endswith((".log", ".lock"))
    )
    assert len(paths) > 10
    for path in paths:
        content = (tmp_path / "origin" / path).read_bytes()
        size = len(content)
        for damaged in (
            b"",
            content[: size // 2],
            chance.randbytes(size),
            bytes(size),
            content + bytes(7),
            None,
        ):
            for clean in (True, False):
                target = tmp_path / "copy"
                shutil.copytree(tmp_path / "origin", target)
                (target / path).unlink()
                if damaged is not None:
                    (target / path).write_bytes(damaged)
                if not clean:
                    (target / ".kafka_cleanshutdown").unlink(missing_ok=True)
                bench.path = str(target)
                log = bench.start()
                assert read_all(log) == [(n, b"%d" % n) for n in range(60)], (path, clean)
                # Half a time index, and noise that ascends, cannot be told from a whole one.
                if not path.endswith(".timeindex") or damaged in (b"", None, bytes(size)) or not clean:
                    assert log.offset_for_timestamp(NOW + 33).offset == 33
                assert put(log, 60).base_offset == 60
                bench.stop(clean=True)
                assert bench.offline == []
                shutil.rmtree(target)
