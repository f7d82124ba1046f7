"""Every prefix of a torn segment recovers to the longest valid prefix, and what stands beside it matches."""

import os
import random
import shutil

import pytest

from ottla.wire.batch import scan
from tests.unit.log.workbench import NOW, Workbench, put, put_from, read_all


def write_segment(path, *, count, roll_at=None):
    """Write `count` batches and return where each one ends, per file."""
    bench = Workbench(path, index_interval_bytes=300)
    for n in range(count):
        if n == roll_at:
            bench.log.roll()
        if n % 3:
            put_from(bench.log, n % 3, n // 3 * 2, n, n, timestamp=NOW + n, epoch=n // 20)
        else:
            put(bench.log, n, b"x" * (n % 40), timestamp=NOW + n, epoch=n // 20)
    bench.stop(clean=False)
    return bench


def beside(log):
    """What recovery has to rebuild: indexes, producers and epochs."""
    active = log.segments[-1]
    return (
        bytes(active.offset_index._entry_bytes()),
        bytes(active.time_index._entry_bytes()),
        sorted((entry.producer_id, entry.next_sequence, tuple(entry.batches)) for entry in log.producers()),
        log.latest_epoch,
        log.max_timestamp(),
    )


def expected_beside(tmp_path, count):
    """What an append leaves in memory after `count` batches, with the index entry that closes the time index."""
    bench = write_segment(tmp_path, count=count)
    bench.log.segments[-1].retire()
    return beside(bench.log)


def test_every_prefix_of_the_last_segment(tmp_path):
    count = 64
    write_segment(tmp_path / "whole", count=count)
    name = "t-0/00000000000000000000.log"
    content = (tmp_path / "whole" / name).read_bytes()
    ends = [position + header.size for position, header in scan(content)]
    wanted = {0: None}
    for whole in range(1, count + 1):
        wanted[whole] = expected_beside(tmp_path / f"expected-{whole}", whole)
        shutil.rmtree(tmp_path / f"expected-{whole}")
    for size in range(len(content) + 1):
        target = tmp_path / "torn"
        os.makedirs(target / "t-0")
        (target / name).write_bytes(content[:size])
        bench = Workbench.__new__(Workbench)
        whole = sum(1 for end in ends if end <= size)
        log = reopen(bench, target)
        assert log.end_offset == 2 * whole
        assert log.segments[-1].file.size == (ends[whole - 1] if whole else 0)
        assert os.path.getsize(target / name) == (ends[whole - 1] if whole else 0)
        assert bool(bench.warnings) == (size not in (0, *ends))
        if whole:
            assert beside(log) == wanted[whole]
        bench.stop(clean=False)
        shutil.rmtree(target)


def reopen(bench, path):
    fresh = Workbench.__new__(Workbench)
    fresh.__dict__.update(new_bench_fields(path))
    bench.__dict__ = fresh.__dict__
    return bench.start()


def new_bench_fields(path):
    from ottla.log.config import LogConfig
    from ottla.world.disk import RealDisk

    return {
        "path": str(path),
        "disk": RealDisk(),
        "config": LogConfig(index_interval_bytes=300),
        "warnings": [],
        "offline": [],
    }


@pytest.mark.parametrize("seed", range(40))
def test_random_damage_above_the_recovery_point(tmp_path, seed):
    """Flip, overwrite or zero bytes somewhere: what is read back is a prefix that ends before the damage."""
    chance = random.Random(seed)
    bench = write_segment(tmp_path, count=60, roll_at=chance.randrange(1, 59))
    names = [f"t-0/{name}" for name in os.listdir(tmp_path / "t-0") if name.endswith(".log")]
    name = chance.choice(names)
    content = bytearray((tmp_path / name).read_bytes())
    at = chance.randrange(len(content))
    damage = chance.choice(["flip", "zero", "noise"])
    if damage == "flip":
        content[at] ^= 1 << chance.randrange(8)
    elif damage == "zero":
        content[at:] = bytes(len(content) - at)
    else:
        content[at:] = chance.randbytes(len(content) - at)
    original = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content)
    intact = [header.end_offset for position, header in scan(original) if position + header.size <= at]
    before = read_values(bench)
    log = bench.start()
    base = int(os.path.basename(name).split(".")[0])
    floor = intact[-1] if intact else base
    found = read_all(log)
    assert found == before[: len(found)]
    assert log.end_offset >= floor
    # The two stamped fields lie outside the CRC; damage there may go unnoticed, as in Kafka.
    stamped = any(position <= at < position + 16 for position, _ in scan(original))
    if not stamped and content != original:
        assert log.end_offset == floor


def read_values(bench):
    values = []
    for n in range(60):
        values += [(2 * n, b"%d" % n), (2 * n + 1, b"%d" % n if n % 3 else b"x" * (n % 40))]
    return values


def test_a_torn_sidecar_never_fails_the_start(tmp_path):
    """Tear or fill each file beside the batches: the log still holds all of them."""
    bench = Workbench(tmp_path / "origin", index_interval_bytes=200, segment_bytes=2000)
    for n in range(60):
        put_from(bench.log, 1, n, n, timestamp=NOW + n, epoch=n // 20)
    bench.stop(clean=True)
    expected = [(n, b"%d" % n) for n in range(60)]
    chance = random.Random(1)
    everything = [
        os.path.join(folder, name)
        for folder, _, names in os.walk(tmp_path / "origin")
        for name in names
        if not name.endswith((".log", ".lock", "meta.properties"))
    ]
    assert len(everything) > 10
    for path in everything:
        relative = os.path.relpath(path, tmp_path / "origin")
        content = open(path, "rb").read()
        for damaged in (b"", content[: len(content) // 2], chance.randbytes(len(content)), bytes(len(content) + 7), None):
            for clean in (True, False):
                target = tmp_path / "copy"
                shutil.copytree(tmp_path / "origin", target)
                if damaged is None:
                    os.unlink(target / relative)
                else:
                    (target / relative).write_bytes(damaged)
                if not clean:
                    (target / ".kafka_cleanshutdown").unlink(missing_ok=True)
                bench = Workbench.__new__(Workbench)
                bench.__dict__.update(new_bench_fields(target))
                log = bench.start()
                assert read_all(log) == expected, (relative, clean)
                assert put(log, 60).base_offset == 60
                bench.stop(clean=True)
                assert bench.offline == []
                shutil.rmtree(target)
