"""The newest batch is read from memory, and never when it is not the newest any more."""

import pytest

from ottla.wire.batch import scan
from tests.unit.log.workbench import NOW, Workbench, batch, put

LARGE = b"v" * 5000


class NoReads(Exception):
    """A file was read."""


@pytest.fixture
def bench(tmp_path):
    bench = Workbench(tmp_path)
    yield bench
    bench.stop(clean=False)


def refuse_reads(log, monkeypatch):
    def read(*_):
        raise NoReads

    monkeypatch.setattr(type(log._active.file), "read", read)


def newest(log, size_bytes_max=1 << 20, **how):
    return log.read(log.end_offset - 1, size_bytes_max, log.end_offset, **how)


def test_the_newest_batch_needs_no_file(bench, monkeypatch):
    log = bench.log
    put(log, b"one")
    put(log, b"two")
    refuse_reads(log, monkeypatch)
    assert [header.base_offset for _, header in scan(newest(log))] == [1]
    assert b"two" in newest(log)
    with pytest.raises(NoReads):
        log.read(0, 1 << 20, log.end_offset)


def test_what_is_kept_is_what_the_file_holds(bench):
    log = bench.log
    for value in (b"one", b"two", LARGE, b"four"):
        put(log, value)
        kept = newest(log)
        log.rest()  # forgets it
        assert newest(log) == kept


def test_limits_hold(bench, monkeypatch):
    log = bench.log
    put(log, b"one")
    refuse_reads(log, monkeypatch)
    assert newest(log, 10)
    assert newest(log, 10, at_least_one=False) == b""


def test_a_large_batch_is_read_from_the_file(bench, monkeypatch):
    log = bench.log
    put(log, b"small")
    put(log, LARGE)
    refuse_reads(log, monkeypatch)
    with pytest.raises(NoReads):
        newest(log)


def test_a_truncated_batch_is_forgotten(bench):
    log = bench.log
    put(log, b"one")
    put(log, b"wrong")
    log.truncate_to(1)
    replacement = batch(b"right")
    replacement[:8] = (1).to_bytes(8, "big")
    log.append_as_follower(replacement)
    assert b"right" in newest(log)
    log.append(batch(b"own"), 0, NOW, from_client=False)
    assert b"own" in newest(log)
