"""From a directory's files to a log that can be used.

O1  After a clean stop nothing is read but the tail of the active segment behind its newest index entry, the newest
    producer snapshot (or all of a short log, which has none) and the leader epochs; the rest is known from one
    directory listing.
O2  Whatever an interrupted swap, deletion or roll left behind is finished or undone first, as Kafka does.
O3  No state of these files fails the start. What can be rebuilt from batches is; what cannot is reported.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ottla.log import names
from ottla.log.checkpoint import CheckpointError
from ottla.log.config import LogConfig
from ottla.log.epoch_cache import EpochCache
from ottla.log.producer_state import Producers
from ottla.log.recovery import Recovery
from ottla.log.replay import is_short, load_newest, replay
from ottla.log.segment import Segment
from ottla.log.snapshots import Snapshots
from ottla.world.disk import Disk


@dataclass(slots=True)
class Loaded:
    """The parts of an open log."""

    segments: list[Segment]
    snapshots: Snapshots
    epochs: EpochCache
    producers: Producers
    start_offset: int
    end_offset: int
    recovery_point: int
    clean: bool


def load(
    disk: Disk,
    directory: str,
    config: LogConfig,
    *,
    clean: bool,
    start_offset: int,
    recovery_point: int,
    warn: Callable[[str], None],
) -> Loaded:
    """Open the log in `directory`; `start_offset` and `recovery_point` are the checkpointed ones, or 0."""
    families, snapshot_offsets = finish_interrupted(disk, directory, disk.list_sizes(directory), warn)
    segments = [Segment(disk, directory, base, families[base]) for base in sorted(families)]
    snapshots = Snapshots(disk, directory, snapshot_offsets)
    epochs = _read_epochs(disk, directory, segments, recovery_point, clean, warn)
    if not segments:
        segments.append(Segment.create(disk, directory, start_offset))
    start_offset = max(start_offset, segments[0].base_offset)
    end_offset = segments[-1].tail_end_offset() if clean else None
    intact = end_offset is not None
    if end_offset is not None:
        snapshots.remove_outside(start_offset, end_offset)
        producers = _load_producers(segments, snapshots, start_offset, end_offset, warn)
        recovery_point = end_offset
    else:
        if clean:
            warn(f"{segments[-1]} does not end as a clean stop leaves it, and is recovered")
            recovery_point = max(recovery_point, segments[-1].base_offset)
        recovery = Recovery(
            segments,
            snapshots,
            epochs,
            start_offset=start_offset,
            recovery_point=recovery_point,
            interval_bytes=config.index_interval_bytes,
            warn=warn,
        )
        end_offset = recovery.run()
        producers = recovery.producers
        recovery_point = min(recovery_point, end_offset)
        snapshots.remove_outside(start_offset, end_offset)
        snapshots.remove_strays([segment.base_offset for segment in segments])
    if end_offset < start_offset:
        warn(
            f"{directory} ends at {end_offset}, before its start offset {start_offset}; it begins anew there"
        )
        for segment in segments:
            segment.remove()
        segments = [Segment.create(disk, directory, start_offset)]
        end_offset = recovery_point = start_offset
        epochs.clear()
        producers.clear(start_offset)
        snapshots.remove_outside(end_offset, end_offset)
    epochs.truncate_from_end(end_offset)
    epochs.truncate_from_start(start_offset)
    return Loaded(segments, snapshots, epochs, producers, start_offset, end_offset, recovery_point, intact)


def finish_interrupted(
    disk: Disk, directory: str, sizes: dict[str, int], warn: Callable[[str], None]
) -> tuple[dict[int, dict[str, int]], list[int]]:
    """Return the sizes of each segment's files by base offset, and the snapshots' offsets, all of them in service.

    Files marked `.deleted` go. As long as one `.cleaned` file is left, the swap it belonged to had not begun, so the
    swap files at or above it are undone; other `.swap` files are complete and take the place of what they cover.
    """
    families: dict[int, dict[str, int]] = {}
    snapshots: list[int] = []
    cleaned: list[int] = []
    swapped: list[tuple[str, names.SegmentFile]] = []
    for name, size in sizes.items():
        file = names.parse_segment_file(name)
        if file is None:
            continue
        if file.passing == names.DELETED:
            disk.remove(f"{directory}/{name}")
        elif file.passing == names.CLEANED:
            cleaned.append(file.base_offset)
            disk.remove(f"{directory}/{name}")
        elif file.passing == names.SWAP:
            swapped.append((name, file))
        elif file.suffix == names.SNAPSHOT:
            snapshots.append(file.base_offset)
        else:
            families.setdefault(file.base_offset, {})[file.suffix] = size
    if swapped:
        _finish_swap(disk, directory, families, swapped, min(cleaned, default=None), sizes, warn)
    for base in [base for base, family in families.items() if names.LOG not in family]:
        for suffix in families.pop(base):
            warn(f"removing {names.segment_stem(base)}{suffix} in {directory}: it has no segment")
            disk.remove(f"{directory}/{names.segment_stem(base)}{suffix}")
    return families, snapshots


def _finish_swap(
    disk: Disk,
    directory: str,
    families: dict[int, dict[str, int]],
    swapped: list[tuple[str, names.SegmentFile]],
    cleaned_from: int | None,
    sizes: dict[str, int],
    warn: Callable[[str], None],
) -> None:
    complete: dict[int, dict[str, int]] = {}
    for name, file in swapped:
        if cleaned_from is not None and file.base_offset >= cleaned_from:
            disk.remove(f"{directory}/{name}")
        else:
            complete.setdefault(file.base_offset, {})[file.suffix] = sizes[name]
    spans = []
    for base, family in complete.items():
        if names.LOG in family:
            segment = Segment(disk, directory, base, family, names.SWAP)
            end_offset = base
            for _, header in segment.headers():
                end_offset = header[0] + header[6] + 1
            segment.rest()
            spans.append((base, end_offset))
    if spans:
        first, last = min(base for base, _ in spans), max(end for _, end in spans)
        for base in [base for base in families if first <= base < last]:
            warn(f"{directory}: segment {base} was compacted, finishing its replacement")
            for suffix in families.pop(base):
                disk.remove(f"{directory}/{names.segment_stem(base)}{suffix}")
    for base, family in complete.items():
        for suffix, size in family.items():
            path = f"{directory}/{names.segment_stem(base)}{suffix}"
            disk.rename(path + names.SWAP, path)
            families.setdefault(base, {})[suffix] = size
    disk.sync_dir(directory)


def _read_epochs(
    disk: Disk,
    directory: str,
    segments: list[Segment],
    recovery_point: int,
    clean: bool,
    warn: Callable[[str], None],
) -> EpochCache:
    """Read the leader epochs, or tell them from the batches when the file is of no use."""
    try:
        epochs = EpochCache.read(disk, directory)
        # A crash can leave a replaced file empty; recovery will see the segments from its point on, but no others.
        lost = (
            not clean
            and epochs.latest < 0
            and len(segments) > 1
            and segments[1].base_offset <= recovery_point
        )
        if not lost:
            return epochs
        warn(f"{directory} has no leader epochs; they are read from the batches instead")
    except CheckpointError as error:
        warn(f"{error}; the leader epochs are read from the batches instead")
    epochs = EpochCache(disk, directory)
    for segment in segments:
        for _, header in segment.headers():
            if header[2] > epochs.latest:
                epochs.assign(header[2], header[0])
        segment.rest()
    return epochs


def _load_producers(
    segments: list[Segment],
    snapshots: Snapshots,
    start_offset: int,
    end_offset: int,
    warn: Callable[[str], None],
) -> Producers:
    """Return the producers at the end of a log that was stopped cleanly."""
    producers = Producers(start_offset)
    if not snapshots.offsets and not is_short(segments):
        # A log from before there were producer ids.
        producers.end_offset = end_offset
        return producers
    for text in load_newest(producers, snapshots, start_offset, end_offset):
        warn(f"producer snapshot is passed over: {text}")
    if producers.end_offset < end_offset:
        replay(producers, segments, end_offset)
        # A retried batch is known again after a restart if it was its producer's last, as in Kafka, wherever from.
        producers.load(producers.snapshot(), end_offset)
    return producers
