"""Text checkpoints: a version, a count, and one line an entry; replaced whole, never edited.

K1  A reader sees the old checkpoint or the new one, never a mixture (`Disk.write_atomic`).
K2  What cannot be parsed raises CheckpointError; whether to go on without it is the caller's choice.

Three files share the shape `topic partition offset`: recovery-point-offset-checkpoint, log-start-offset-checkpoint and
replication-offset-checkpoint (and the cleaner's cleaner-offset-checkpoint); leader-epoch-checkpoint is `epoch
start_offset`.
"""

from collections.abc import Iterable, Mapping

from ottla.world.disk import Disk

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"

_VERSION = "0"

PartitionKey = tuple[str, int]


class CheckpointError(Exception):
    """A checkpoint file that does not say what it should."""


def read_lines(disk: Disk, path: str, width: int) -> list[list[str]]:
    """Return the entries of a checkpoint, each split into `width` words; an absent or empty file has none."""
    try:
        text = disk.read_bytes(path).decode()
    except FileNotFoundError:
        return []
    except UnicodeDecodeError:
        raise CheckpointError(f"{path} is not text") from None
    if not text:
        return []
    lines = text.splitlines()
    if lines[0] != _VERSION:
        raise CheckpointError(f"{path} has version {lines[0]!r}, not {_VERSION}")
    if not text.endswith("\n"):
        # A number that lost its last digits would still be one.
        raise CheckpointError(f"{path} is cut short")
    if len(lines) < 2:
        return []
    entries = [line.split() for line in lines[2:]]
    if lines[1] != str(len(entries)):
        raise CheckpointError(f"{path} promises {lines[1]!r} entries and has {len(entries)}")
    if any(len(entry) != width for entry in entries):
        raise CheckpointError(f"{path} has a line that is not {width} words")
    return entries


def format_lines(entries: Iterable[str]) -> bytes:
    """Return the content of a checkpoint of these lines."""
    lines = list(entries)
    return "\n".join([_VERSION, str(len(lines)), *lines, ""]).encode()


def read_offsets(disk: Disk, path: str) -> dict[PartitionKey, int]:
    """Return the offset of each partition in a checkpoint."""
    try:
        return {
            (topic, int(partition)): int(offset) for topic, partition, offset in read_lines(disk, path, 3)
        }
    except ValueError:
        raise CheckpointError(f"{path} has an offset or partition that is no number") from None


def write_offsets(disk: Disk, path: str, offsets: Mapping[PartitionKey, int]) -> None:
    """Replace a checkpoint with these offsets."""
    lines = (f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items())
    disk.write_atomic(path, format_lines(lines))
