"""A plan carried out: what is mapped, what is written, and that a stopped plan leaves nothing."""

import os
from dataclasses import replace

import pytest

from ottla.log import names
from ottla.log.compaction import Limits, Plan, Source, compact, group_sources
from ottla.log.latest_offsets import ENTRY_BYTES
from ottla.log.segment import Segment
from ottla.log.transaction_index import AbortedTransaction
from ottla.wire.batch import build_batch, read_records, scan
from ottla.wire.control import end_transaction_batch
from ottla.wire.errors import ProtocolError
from ottla.wire.record import Record
from ottla.world.disk import RealDisk

NOW = 1_800_000_000_000
THEN = 1_700_000_000_000
LIMITS = Limits(
    dedupe_bytes=1 << 20,
    buffer_bytes=1 << 16,
    segment_bytes=1 << 20,
    index_bytes=1 << 20,
    index_interval_bytes=64,
)


@pytest.fixture
def disk():
    return RealDisk()


def segment(disk, path, base_offset, *batches):
    made = Segment.create(disk, str(path), base_offset)
    for batch in batches:
        made.append(batch, 64)
    made.retire()
    return made


def batch(offset, *pairs, **how):
    records = [Record(offset + i, THEN + offset + i, key, value) for i, (key, value) in enumerate(pairs)]
    return build_batch(records, base_offset=offset, **how)


def plan(disk, path, segments, *, start_offset=0, end_offset, aborted=(), producers=None, limits=LIMITS):
    return Plan(
        disk=disk,
        directory=str(path),
        sources=tuple(Source.of(segment) for segment in segments),
        start_offset=start_offset,
        end_offset=end_offset,
        aborted=tuple(aborted),
        producers=producers or {},
        now_ms=NOW,
        delete_retention_ms=1_000,
        limits=limits,
    )


def run(the_plan):
    slices = list(compact(the_plan))
    return [piece.replacement for piece in slices if piece.replacement], slices[-1].clean_offset, slices


def content(new):
    data = new.file.read(0, new.size_bytes)
    return [
        (record.offset, record.key, record.value)
        for pos, header in scan(data)
        if not header.is_control
        for record in read_records(data, pos)
    ]


def test_segments_are_merged_and_only_last_records_stay(disk, tmp_path):
    segments = [
        segment(disk, tmp_path, 0, batch(0, (b"a", b"1"), (b"b", b"1")), batch(2, (b"a", b"2"))),
        segment(disk, tmp_path, 3, batch(3, (b"c", b"1"), (b"b", b"2"))),
    ]
    (replacement,), clean_offset, slices = run(plan(disk, tmp_path, segments, end_offset=5))
    assert replacement.old == tuple(segments)
    assert content(replacement.new) == [(2, b"a", b"2"), (3, b"c", b"1"), (4, b"b", b"2")]
    assert clean_offset == 5
    assert sum(piece.records_kept for piece in slices) == 3
    assert sum(piece.bytes_written for piece in slices) == replacement.new.size_bytes


def test_clean_segments_lose_what_dirty_ones_supersede(disk, tmp_path):
    segments = [
        segment(disk, tmp_path, 0, batch(0, (b"a", b"1"), (b"b", b"1"))),
        segment(disk, tmp_path, 2, batch(2, (b"a", b"2"))),
    ]
    (replacement,), clean_offset, _ = run(plan(disk, tmp_path, segments, start_offset=2, end_offset=3))
    assert content(replacement.new) == [(1, b"b", b"1"), (2, b"a", b"2")]
    assert clean_offset == 3


def test_the_dirty_part_may_begin_within_a_segment(disk, tmp_path):
    segments = [segment(disk, tmp_path, 0, batch(0, (b"a", b"1")), batch(1, (b"b", b"1"), (b"a", b"2")))]
    (replacement,), _, _ = run(plan(disk, tmp_path, segments, start_offset=2, end_offset=3))
    assert content(replacement.new) == [(1, b"b", b"1"), (2, b"a", b"2")]


def test_a_full_map_stops_early_and_the_rest_stays(disk, tmp_path):
    segments = [
        segment(disk, tmp_path, n * 2, batch(n * 2, (b"k%d" % n, b"v"), (b"x", b"%d" % n))) for n in range(6)
    ]
    tight = Limits(3 * ENTRY_BYTES, 1 << 16, 1 << 20, 1 << 20, 64)
    replacements, clean_offset, _ = run(plan(disk, tmp_path, segments, end_offset=12, limits=tight))
    assert clean_offset == 4
    assert len(replacements) == 1
    assert replacements[0].old == tuple(segments[:2])
    assert content(replacements[0].new) == [(0, b"k0", b"v"), (2, b"k1", b"v"), (3, b"x", b"1")]


def test_every_plan_gets_on_even_with_no_memory_at_all(disk, tmp_path):
    segments = [segment(disk, tmp_path, 0, *(batch(n, (b"k%d" % n, b"v")) for n in range(5)))]
    none = Limits(0, 1 << 16, 1 << 20, 1 << 20, 64)
    offset = 0
    for expected in (1, 2, 3, 4, 5):
        (replacement,), offset, _ = run(
            plan(disk, tmp_path, segments, start_offset=offset, end_offset=5, limits=none)
        )
        replacement.new.remove()
        assert offset == expected


@pytest.mark.parametrize("buffer_bytes", [61, 100, 1_000, 1 << 16])
def test_batches_larger_than_the_buffer(disk, tmp_path, buffer_bytes):
    batches = [batch(n, (b"k%d" % (n % 3), b"v" * (n * 37 % 900))) for n in range(30)]
    segments = [segment(disk, tmp_path, 0, *batches)]
    small = Limits(1 << 20, buffer_bytes, 1 << 20, 1 << 20, 64)
    (replacement,), _, _ = run(plan(disk, tmp_path, segments, end_offset=30, limits=small))
    assert [offset for offset, _, _ in content(replacement.new)] == [27, 28, 29]


def test_the_cleaned_segment_is_indexed_and_dated(disk, tmp_path):
    segments = [segment(disk, tmp_path, 0, *(batch(n, (b"k%d" % n, b"v" * 50)) for n in range(40)))]
    disk.set_modified_ms(segments[0].file.path, THEN)
    (replacement,), _, _ = run(plan(disk, tmp_path, segments, end_offset=40))
    new = replacement.new
    assert new.suffix == names.CLEANED
    assert disk.modified_ms(new.file.path) == THEN
    assert new.largest_timestamp() == THEN + 39
    assert disk.size(new.offset_index.path) == new.offset_index.size_bytes == new.offset_index.count * 8 > 0
    assert disk.size(new.time_index.path) == new.time_index.size_bytes > 0
    fresh = Segment(
        disk,
        str(tmp_path),
        0,
        {
            names.LOG: new.size_bytes,
            names.OFFSET_INDEX: new.offset_index.size_bytes,
            names.TIME_INDEX: new.time_index.size_bytes,
        },
        names.CLEANED,
    )
    for offset in range(40):
        assert fresh.locate(offset)[1][0] == offset
    assert fresh.tail_end_offset() == 40
    assert fresh.offset_index.ascends()
    assert fresh.time_index.ascends()


def test_a_replacement_reaches_as_far_as_what_it_replaces(disk, tmp_path):
    segments = [
        segment(disk, tmp_path, 0, batch(0, (b"a", b"1"))),
        segment(
            disk, tmp_path, 1, batch(1, (b"b", b"1"), (b"c", b"1")), batch(3, (b"b", b"2"), (b"b", b"3"))
        ),
        segment(disk, tmp_path, 5),
        segment(disk, tmp_path, 6, batch(6, (b"b", b"4"), (b"c", b"2"))),
    ]
    apart = replace(LIMITS, segment_bytes=280)
    replacements, _, _ = run(plan(disk, tmp_path, segments, end_offset=8, limits=apart))
    assert [[old.base_offset for old in replacement.old] for replacement in replacements] == [[0, 1, 5], [6]]
    first = replacements[0].new
    assert content(first) == [(0, b"a", b"1")]
    headers = [header for _, header in scan(first.file.read(0, first.size_bytes))]
    assert [(header.end_offset, header.record_count) for header in headers] == [(1, 1), (5, 0)]


def test_aborted_transactions_reach_the_index_of_their_markers_segment(disk, tmp_path):
    aborted = AbortedTransaction(7, 1, 4, 5)
    data = batch(1, (b"a", b"no"), producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    marker = end_transaction_batch(
        commit=False, producer_id=7, producer_epoch=0, coordinator_epoch=0, timestamp_ms=THEN, base_offset=4
    )
    segments = [
        segment(disk, tmp_path, 0, batch(0, (b"a", b"yes")), data),
        segment(disk, tmp_path, 2, batch(2, (b"b", b"yes"), (b"c", b"yes")), marker),
    ]
    apart = Limits(1 << 20, 1 << 16, 150, 1 << 20, 64)
    replacements, _, _ = run(plan(disk, tmp_path, segments, end_offset=5, aborted=[aborted], limits=apart))
    assert [content(new) for new, _ in replacements] == [
        [(0, b"a", b"yes")],
        [(2, b"b", b"yes"), (3, b"c", b"yes")],
    ]
    assert [new.transaction_index.entries() for new, _ in replacements] == [[], [aborted]]
    assert not os.path.exists(replacements[0].new.transaction_index.path)
    assert os.path.getsize(replacements[1].new.transaction_index.path) == 34


def test_what_stops_a_plan_leaves_no_file(disk, tmp_path):
    segments = [
        segment(disk, tmp_path, 0, *(batch(n, (b"a", b"v" * 500)) for n in range(50))),
    ]
    before = sorted(os.listdir(tmp_path))
    small = Limits(1 << 20, 4_096, 1 << 20, 1 << 20, 64)
    (replacement,), _, slices = run(plan(disk, tmp_path, segments, end_offset=50, limits=small))
    replacement.new.remove()
    for stop in range(len(slices) - 2):
        work = compact(plan(disk, tmp_path, segments, end_offset=50, limits=small))
        for _ in range(stop):
            next(work)
        work.close()
        assert sorted(os.listdir(tmp_path)) == before


def test_a_damaged_segment_is_not_cleaned(disk, tmp_path):
    good = segment(disk, tmp_path, 0, batch(0, (b"a", b"1")), batch(1, (b"b", b"2")))
    before = sorted(os.listdir(tmp_path))
    good.file.write_at(good.size_bytes - 3, b"?")
    with pytest.raises(ProtocolError):
        run(plan(disk, tmp_path, [good], end_offset=2))
    good.file.write_at(8, b"\xff\xff")
    with pytest.raises(ProtocolError):
        run(plan(disk, tmp_path, [good], end_offset=2))
    assert sorted(os.listdir(tmp_path)) == before


def test_a_segment_that_is_gone_is_not_made_anew(disk, tmp_path):
    gone = segment(disk, tmp_path, 0, batch(0, (b"a", b"1")))
    the_plan = plan(disk, tmp_path, [gone], end_offset=1)
    gone.remove()
    with pytest.raises(FileNotFoundError):
        run(the_plan)
    assert os.listdir(tmp_path) == []


def source(base_offset, size, index=8, time_index=12):
    return Source(None, base_offset, "", size, index, time_index)  # type: ignore[arg-type]


def grouped(sources, end_offset, **limits):
    wide = {
        "dedupe_bytes": 1,
        "buffer_bytes": 1,
        "segment_bytes": 100,
        "index_bytes": 100,
        "index_interval_bytes": 1,
    }
    groups = group_sources(sources, Limits(**{**wide, **limits}), end_offset)
    return [[member.base_offset for member in group] for group in groups]


def test_groups_fit_into_a_segment():
    sources = [source(0, 60), source(10, 40), source(20, 1), source(30, 100), source(40, 101), source(50, 5)]
    assert grouped(sources, 60) == [[0, 10], [20], [30], [40], [50]]
    assert grouped([], 0) == []


def test_groups_fit_into_the_indexes():
    sources = [source(n, 1, index=40, time_index=12) for n in range(5)]
    assert grouped(sources, 60) == [[0, 1], [2, 3], [4]]
    sources = [source(n, 1, index=8, time_index=60) for n in range(3)]
    assert grouped(sources, 60) == [[0], [1], [2]]


def test_groups_fit_into_relative_offsets():
    wide = 1 << 31
    assert grouped([source(0, 1), source(10, 1)], wide) == [[0, 10]]
    assert grouped([source(0, 1), source(10, 1)], wide + 1) == [[0], [10]]
    assert grouped([source(0, 1), source(10, 1), source(wide, 1)], wide + 5) == [[0, 10], [wide]]
    # What is empty joins its neighbour however far it is.
    assert grouped([source(0, 1), source(wide + 7, 0)], wide + 9) == [[0, wide + 7]]
