"""The cleaner on real logs: which one is due, what of it, and what happens when the log changes meanwhile."""

import errno
import os

import pytest

from ottla.log.cleaner import Cleaner, CleanerConfig, survey
from ottla.log.config import LogConfig
from ottla.log.directory import LogDirectory
from ottla.log.latest_offsets import ENTRY_BYTES
from ottla.wire.batch import build_batch, read_records, scan
from ottla.wire.control import end_transaction_batch
from ottla.wire.errors import ProtocolError
from ottla.wire.record import Record
from ottla.world.disk import RealDisk
from ottla.world.entropy import RealEntropy

NOW = 1_800_000_000_000
HOUR = 3_600_000


def open_log(tmp_path, topic="t", **settings):
    """Open a log, or open it again as after a crash."""

    def warn(text):
        assert "offline" in text, text

    directory = LogDirectory(str(tmp_path), RealDisk(), RealEntropy(), warn)
    config = LogConfig(**{"cleanup_policy": frozenset({"compact"}), "index_interval_bytes": 64, **settings})
    return directory.open_log(topic, 0, bytes(16), config)


def put(log, *pairs, now_ms=NOW, **how):
    records = [Record(i, now_ms, key, value) for i, (key, value) in enumerate(pairs)]
    return log.append(build_batch(records, **how), 0, now_ms, from_client=True)


def fill(log, count, keys, *, size=100, now_ms=NOW):
    for n in range(count):
        put(log, (b"k%d" % (n % keys), b"%d:" % n + b"v" * size), now_ms=now_ms)


def batches(log):
    offset = log.start_offset
    while data := log.read(offset, 1 << 30, log.end_offset):
        for pos, header in scan(data):
            yield data, pos, header
            offset = header.end_offset


def content(log):
    return [
        (record.offset, record.key, record.value)
        for data, pos, header in batches(log)
        if not header.is_control
        for record in read_records(data, pos)
        if record.offset >= log.start_offset
    ]


def run(cleaner, logs, now_ms=NOW):
    """Clean the dirtiest log to its end; say which."""
    cleaning = cleaner.plan([(log, log.last_stable_offset(log.end_offset)) for log in logs], now_ms)
    if cleaning is None:
        return None
    while cleaner.install(cleaning, cleaning.clean()):
        pass
    return cleaning.log


@pytest.fixture
def cleaner():
    return Cleaner(RealDisk())


def test_a_log_is_cleaned_up_to_its_active_segment(cleaner, tmp_path):
    log = open_log(tmp_path)
    fill(log, 50, keys=5)
    log.roll()
    fill(log, 10, keys=5)
    assert run(cleaner, [log]) is log
    assert [offset for offset, _, _ in content(log)] == [*range(45, 50), *range(50, 60)]
    assert cleaner.clean_offset(log) == 50
    assert [segment.base_offset for segment in log.segments] == [0, 50]
    assert (tmp_path / "cleaner-offset-checkpoint").read_text() == "0\n1\nt 0 50\n"
    names = os.listdir(log.path)
    assert sum(name.endswith(".deleted") for name in names) == 3
    assert not [name for name in names if name.endswith((".cleaned", ".swap"))]
    assert run(cleaner, [log]) is None


def test_small_segments_become_one(cleaner, tmp_path):
    log = open_log(tmp_path, segment_bytes=20_000)
    for _ in range(6):
        fill(log, 10, keys=10)
        log.roll()
    assert run(cleaner, [log]) is log
    assert [segment.base_offset for segment in log.segments] == [0, 60]
    assert [offset for offset, _, _ in content(log)] == list(range(50, 60))


def test_reads_and_appends_go_on_between_slices(tmp_path):
    cleaner = Cleaner(RealDisk(), CleanerConfig(io_buffer_size=4_000))
    log = open_log(tmp_path)
    fill(log, 200, keys=7)
    log.roll()
    cleaning = cleaner.plan([(log, log.end_offset)], NOW)
    expected = {key: value for _, key, value in content(log)}
    slices = 0
    while cleaner.install(cleaning, cleaning.clean()):
        slices += 1
        put(log, (b"new", b"%d" % slices))
        expected[b"new"] = b"%d" % slices
        assert {key: value for _, key, value in content(log)} == expected
    assert slices > 20


def test_the_dirty_ratio_decides(cleaner, tmp_path):
    log = open_log(tmp_path, min_cleanable_dirty_ratio=0.5)
    fill(log, 20, keys=20)
    log.roll()
    assert run(cleaner, [log]) is log
    fill(log, 15, keys=20)
    log.roll()
    assert survey(log, 20, log.end_offset, NOW).ratio == pytest.approx(15 / 35, abs=0.02)
    assert run(cleaner, [log]) is None
    assert cleaner.dirtiest_ratio == pytest.approx(15 / 35, abs=0.02)
    fill(log, 15, keys=20)
    log.roll()
    assert run(cleaner, [log]) is log


def test_the_dirtiest_log_comes_first(cleaner, tmp_path):
    logs = [open_log(tmp_path, f"t{n}", min_cleanable_dirty_ratio=0.1) for n in range(3)]
    for log in logs:
        fill(log, 20, keys=20)
        log.roll()
    assert {run(cleaner, logs) for _ in logs} == set(logs)
    for log, again in zip(logs, (5, 20, 10), strict=True):
        fill(log, again, keys=20)
        log.roll()
    assert [run(cleaner, logs) for _ in range(4)] == [logs[1], logs[2], logs[0], None]


def test_logs_that_are_not_compacted_are_left_alone(cleaner, tmp_path):
    log = open_log(tmp_path, cleanup_policy=frozenset({"delete"}))
    fill(log, 20, keys=1)
    log.roll()
    assert run(cleaner, [log]) is None
    log.config = LogConfig(cleanup_policy=frozenset({"compact", "delete"}))
    assert run(cleaner, [log]) is log


def test_an_empty_log_is_clean(cleaner, tmp_path):
    assert run(cleaner, [open_log(tmp_path)]) is None


def test_nothing_above_the_stable_offset_is_touched(cleaner, tmp_path):
    log = open_log(tmp_path)
    for _ in range(3):
        fill(log, 10, keys=1)
        log.roll()
    cleaning = cleaner.plan([(log, 15)], NOW)
    while cleaner.install(cleaning, cleaning.clean()):
        pass
    assert [offset for offset, _, _ in content(log)] == [9, *range(10, 30)]
    assert cleaner.clean_offset(log) == 10


def test_an_open_transaction_holds_the_cleaner_back(cleaner, tmp_path):
    log = open_log(tmp_path)
    fill(log, 10, keys=1)
    log.roll()
    put(log, (b"k0", b"open"), producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    fill(log, 9, keys=1)
    log.roll()
    assert run(cleaner, [log]) is log
    assert [offset for offset, _, _ in content(log)] == [9, *range(10, 20)]


def test_young_segments_wait(cleaner, tmp_path):
    log = open_log(tmp_path, min_compaction_lag_ms=HOUR)
    fill(log, 10, keys=1, now_ms=NOW - 2 * HOUR)
    log.roll()
    fill(log, 10, keys=1, now_ms=NOW - HOUR // 2)
    log.roll()
    assert run(cleaner, [log]) is log
    assert [offset for offset, _, _ in content(log)] == [9, *range(10, 20)]
    assert run(cleaner, [log]) is None
    assert run(cleaner, [log], NOW + HOUR // 2 + 1) is log
    assert [offset for offset, _, _ in content(log)] == [19]


def test_old_dirt_does_not_wait_for_the_ratio(cleaner, tmp_path):
    log = open_log(tmp_path, min_cleanable_dirty_ratio=0.9, max_compaction_lag_ms=HOUR, segment_ms=HOUR)
    fill(log, 20, keys=20)
    log.roll()
    assert run(cleaner, [log]) is log
    fill(log, 2, keys=2, now_ms=NOW + 1)
    log.roll()
    assert run(cleaner, [log], NOW + HOUR) is None
    assert run(cleaner, [log], NOW + HOUR + 2) is log
    assert cleaner.delay_ms_max == 1
    assert len(content(log)) == 20


def test_memory_limits_one_cleaning_and_the_next_goes_on(tmp_path):
    cleaner = Cleaner(
        RealDisk(), CleanerConfig(dedupe_buffer_size=ENTRY_BYTES * 20, dedupe_buffer_load_factor=1.0)
    )
    log = open_log(tmp_path, min_cleanable_dirty_ratio=0.0)
    fill(log, 100, keys=50)
    log.roll()
    clean_offsets = []
    while run(cleaner, [log]):
        clean_offsets.append(cleaner.clean_offset(log))
    assert clean_offsets == [20, 40, 60, 80, 100]
    assert [offset for offset, _, _ in content(log)] == list(range(50, 100))


def test_how_far_a_log_is_clean_survives_a_restart(cleaner, tmp_path):
    log = open_log(tmp_path)
    fill(log, 20, keys=20)
    log.roll()
    run(cleaner, [log])
    again = Cleaner(RealDisk())
    assert again.clean_offset(log) == 20
    assert run(again, [log]) is None


@pytest.mark.parametrize(
    "text", ["", "0\n1\nt 0\n", "7\n1\nt 0 5\n", "\0\xff", "0\n1\nt 0 99999\n", "0\n1\nt 0 3\n"]
)
def test_a_strange_checkpoint_means_that_all_is_dirty(tmp_path, text):
    log = open_log(tmp_path, min_cleanable_dirty_ratio=0.4)
    fill(log, 20, keys=2)
    log.roll()
    log.raise_start_offset(10)
    (tmp_path / "cleaner-offset-checkpoint").write_bytes(text.encode("latin-1"))
    cleaner = Cleaner(RealDisk())
    assert run(cleaner, [log]) is log
    assert cleaner.clean_offset(log) == 20


def test_truncation_makes_dirty(cleaner, tmp_path):
    log = open_log(tmp_path)
    fill(log, 20, keys=20)
    log.roll()
    run(cleaner, [log])
    log.truncate_to(12)
    cleaner.truncate([(log, 12)])
    assert cleaner.clean_offset(log) == 12
    cleaner.truncate([(log, 15)])
    assert cleaner.clean_offset(log) == 12


def told_log(tmp_path, cleaner, **settings):
    """A log whose directory tells the cleaner of truncations, as that of a node does."""
    log = open_log(tmp_path, **settings)
    log._home.on_truncation = cleaner.truncate
    return log


@pytest.mark.parametrize("whole", [False, True], ids=["the end", "all of it"])
def test_a_truncation_is_known_to_the_cleaner_before_anything_is_cut(cleaner, tmp_path, whole):
    log = told_log(tmp_path, cleaner, min_cleanable_dirty_ratio=0.01)
    fill(log, 20, keys=20)
    log.roll()
    run(cleaner, [log])
    assert cleaner.clean_offset(log) == 20
    if whole:
        log.truncate_fully_and_start_at(5)
    else:
        log.truncate_to(12)
    low = 5 if whole else 12
    assert cleaner.clean_offset(log) == low
    assert Cleaner(RealDisk()).clean_offset(log) == low, "and on the disk"
    fill(log, 20, keys=1)
    log.roll()
    assert run(cleaner, [log]) is log
    assert [key for offset, key, _ in content(log) if offset >= low] == [b"k0"]


def test_a_truncation_after_the_last_exchange_leaves_nothing_clean_that_came_later(cleaner, tmp_path):
    log = told_log(tmp_path, cleaner, min_cleanable_dirty_ratio=0.01)
    fill(log, 20, keys=20)
    log.roll()
    cleaning = cleaner.plan([(log, log.end_offset)], NOW)
    while (done := cleaning.clean()).clean_offset is None:
        assert cleaner.install(cleaning, done)
    log.truncate_to(7)
    fill(log, 20, keys=1)
    log.roll()
    assert not cleaner.install(cleaning, done)
    assert (cleaner.clean_offset(log) or 0) <= 7
    assert run(cleaner, [log]) is log
    assert [key for offset, key, _ in content(log) if offset >= 7] == [b"k0"]


@pytest.mark.parametrize("after", range(0, 12, 2))
def test_a_truncation_while_a_cleaning_is_under_way_ends_it(tmp_path, after):
    """Also when the log has grown to the same size again."""
    cleaner = Cleaner(RealDisk(), CleanerConfig(io_buffer_size=4_000))
    log = told_log(tmp_path, cleaner, segment_bytes=2_000, min_cleanable_dirty_ratio=0.01)
    fill(log, 40, keys=40)
    log.roll()
    cleaning = cleaner.plan([(log, log.end_offset)], NOW)
    for _ in range(after):
        if not cleaner.install(cleaning, cleaning.clean()):
            return
    log.truncate_to(7)
    for n in range(7, 40):
        put(log, (b"k0", b"%d:" % n + b"v" * 100))
    log.roll()
    before = content(log)
    try:
        while cleaner.install(cleaning, cleaning.clean()):
            pass
    except (OSError, ProtocolError) as error:
        cleaner.fail(cleaning, error)
    assert content(log) == before
    assert (cleaner.clean_offset(log) or 0) <= 7
    assert not cleaner.is_busy(log)
    while run(cleaner, [log]) is not None:
        pass
    assert [key for offset, key, _ in content(log) if offset >= 7] == [b"k0"], "what came after the cut is cleaned"


@pytest.mark.parametrize(
    "error", [OSError(errno.EIO, "unreadable"), ValueError("a bug")], ids=["the disk's", "ours"]
)
def test_a_log_that_cannot_be_looked_at_keeps_the_cleaner_from_no_other(tmp_path, monkeypatch, error):
    cleaner, logs = Cleaner(RealDisk()), [open_log(tmp_path / name, name) for name in "ab"]
    words = []
    for log in logs:
        fill(log, 20, keys=2)
        log.roll()
        log._home._warn = words.append
        log._home.bugs._warn = words.append
    real = survey

    def look(log, *rest):
        if log.topic == "a":
            raise error
        return real(log, *rest)

    monkeypatch.setattr("ottla.log.cleaner.survey", look)
    assert run(cleaner, logs) is logs[1]
    assert run(cleaner, logs) is None
    if isinstance(error, OSError):
        assert logs[0]._home.offline is error
    else:
        assert cleaner.is_unclean(logs[0])
        assert any("a bug" in word for word in words)


def test_a_log_made_anew_is_dirty(cleaner, tmp_path):
    log = open_log(tmp_path)
    fill(log, 20, keys=20)
    log.roll()
    assert run(cleaner, [log]) is log
    log.delete()
    again = open_log(tmp_path)
    fill(again, 30, keys=1)
    again.roll()
    assert run(cleaner, [again]) is again
    assert len(content(again)) == 1
    assert run(cleaner, []) is None
    assert (tmp_path / "cleaner-offset-checkpoint").read_text() == "0\n0\n"


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC], ids=["broken", "full"])
def test_a_failed_exchange_takes_the_directory_out_of_service(cleaner, tmp_path, monkeypatch, code):
    log = open_log(tmp_path)
    fill(log, 20, keys=2)
    log.roll()

    def rename(self, source, target):
        raise OSError(code, "no more")

    monkeypatch.setattr(RealDisk, "rename", rename)
    assert run(cleaner, [log]) is log
    assert log._home.offline is not None
    assert cleaner.is_unclean(log)
    assert not cleaner.is_busy(log)
    assert cleaner.clean_offset(log) is None


def test_a_checkpoint_that_cannot_be_written_stops_nothing(cleaner, tmp_path, monkeypatch):
    log = open_log(tmp_path)
    fill(log, 20, keys=2)
    log.roll()

    def write_atomic(self, path, data):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(RealDisk, "write_atomic", write_atomic)
    assert run(cleaner, [log]) is log
    assert cleaner.clean_offset(log) == 20


def changes():
    def truncate(log):
        log.truncate_to(7)

    def overwrite(log):
        log.truncate_to(7)
        for _ in range(30):
            put(log, (b"other", b"value" * 9))

    def truncate_all(log):
        log.truncate_fully_and_start_at(100)

    def expire(log):
        log.config = LogConfig(cleanup_policy=frozenset({"delete"}), retention_ms=0)
        log.delete_old_segments(NOW + HOUR, log.end_offset)

    def delete(log):
        log.delete()

    return [truncate, overwrite, truncate_all, expire, delete]


@pytest.mark.parametrize("change", changes(), ids=lambda change: change.__name__)
@pytest.mark.parametrize("after", range(7))
def test_work_on_a_log_that_changed_is_thrown_away(tmp_path, change, after):
    cleaner = Cleaner(RealDisk(), CleanerConfig(io_buffer_size=4_000))
    log = open_log(tmp_path, segment_bytes=2_000)
    fill(log, 40, keys=2)
    log.roll()
    cleaning = cleaner.plan([(log, log.end_offset)], NOW)
    for _ in range(after):
        assert cleaner.install(cleaning, cleaning.clean())
    change(log)
    before = content(log)
    try:
        while cleaner.install(cleaning, cleaning.clean()):
            pass
    except (OSError, ProtocolError) as error:
        cleaner.fail(cleaning, error)
    assert content(log) == before
    assert cleaner.clean_offset(log) is None
    assert not cleaner.is_busy(log)
    assert not cleaner.is_unclean(log)
    if change.__name__ != "delete":
        assert not [name for name in os.listdir(log.path) if name.endswith((".cleaned", ".swap"))]


def test_a_log_in_work_is_busy(cleaner, tmp_path):
    log = open_log(tmp_path)
    fill(log, 20, keys=2)
    log.roll()
    cleaning = cleaner.plan([(log, log.end_offset)], NOW)
    assert cleaner.is_busy(log)
    assert cleaner.plan([(log, log.end_offset)], NOW) is None
    while cleaner.install(cleaning, cleaning.clean()):
        pass
    assert not cleaner.is_busy(log)
    assert cleaner.last is cleaning
    assert (cleaning.records_read, cleaning.records_kept) == (40, 2)


def test_a_damaged_log_is_given_up(cleaner, tmp_path):
    log = open_log(tmp_path)
    fill(log, 20, keys=2)
    log.roll()
    log.segments[0].file.write_at(300, b"damage")
    cleaning = cleaner.plan([(log, log.end_offset)], NOW)
    with pytest.raises(ProtocolError) as caught:
        cleaning.clean()
    cleaner.fail(cleaning, caught.value)
    assert cleaner.is_unclean(log)
    assert cleaner.unclean_count == 1
    assert cleaner.plan([(log, log.end_offset)], NOW) is None
    assert run(cleaner, []) is None
    assert not cleaner.is_unclean(log)


def test_producers_go_on_after_compaction_and_reopening(cleaner, tmp_path):
    log = open_log(tmp_path)
    for sequence in range(5):
        put(log, (b"k", b"%d" % sequence), producer_id=3, producer_epoch=1, base_sequence=sequence)
    fill(log, 3, keys=1)
    put(log, (b"k", b"last"))
    log.roll()
    run(cleaner, [log])
    assert [value for _, key, value in content(log) if key == b"k"] == [b"last"]
    log.close(clean=False)
    for name in os.listdir(log.path):
        if name.endswith((".snapshot", ".deleted")):
            os.unlink(f"{log.path}/{name}")
    log = open_log(tmp_path)
    assert put(log, (b"k", b"4"), producer_id=3, producer_epoch=1, base_sequence=4).duplicate
    assert not put(log, (b"k", b"5"), producer_id=3, producer_epoch=1, base_sequence=5).duplicate


def test_aborted_records_go_and_stay_invisible_meanwhile(cleaner, tmp_path):
    log = open_log(tmp_path, min_cleanable_dirty_ratio=0.0, delete_retention_ms=HOUR)
    put(log, (b"a", b"kept"))
    put(log, (b"a", b"aborted"), producer_id=3, producer_epoch=1, base_sequence=0, transactional=True)
    marker = end_transaction_batch(
        commit=False, producer_id=3, producer_epoch=1, coordinator_epoch=0, timestamp_ms=NOW
    )
    log.append(marker, 0, NOW, from_client=False)
    log.roll()
    assert log.aborted_transactions(0, 10) == [(3, 1)]
    run(cleaner, [log])
    assert content(log) == [(0, b"a", b"kept")]
    # The producer's last batch stays, emptied, and with it the marker and its entry.
    assert log.aborted_transactions(0, 10) == [(3, 1)]
    log.expire_producers(NOW + 100 * HOUR)
    assert log.producers() == []
    for later in (1, 2):
        fill(log, 1, keys=1, now_ms=NOW + later)
        log.roll()
        run(cleaner, [log], NOW + later)
    assert log.aborted_transactions(0, 10) == []
    assert [header.base_offset for _, _, header in batches(log) if header.is_control] == [2]
    fill(log, 1, keys=1, now_ms=NOW + 2 * HOUR)
    log.roll()
    run(cleaner, [log], NOW + 2 * HOUR)
    assert [header.base_offset for _, _, header in batches(log) if header.is_control] == []
