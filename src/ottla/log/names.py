"""How the files and directories of a log are named.

A segment is a family of files that share the twenty-digit base offset: `.log`, `.index`, `.timeindex`, `.txnindex`,
and the producer `.snapshot` taken where the segment begins. While a file is on its way in or out it carries a second
suffix: `.cleaned` (being written by the cleaner), `.swap` (complete, taking the place of others), `.deleted` (to be
removed). A partition's directory is `<topic>-<partition>`; with a unique id and `-delete`, `-future` or `-stray`
behind it, it is on its way out, on its way in from another log directory, or not known to the cluster.
"""

import re
from typing import NamedTuple

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"

CLEANED = ".cleaned"
SWAP = ".swap"
DELETED = ".deleted"

DELETE_DIR = "-delete"
FUTURE_DIR = "-future"
STRAY_DIR = "-stray"

METADATA_TOPIC = "__cluster_metadata"

PARTITION_METADATA = "partition.metadata"
LEADER_EPOCHS = "leader-epoch-checkpoint"

SEGMENT_SUFFIXES = (LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)

_SEGMENT_FILE = re.compile(
    r"(\d{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)(\.cleaned|\.swap|\.deleted)?"
)
_MARKED_DIR = re.compile(r"(\S+)-(\S+)\.(\S+)(-delete|-future|-stray)")
_DIR_NAME_BYTES_MAX = 255


class SegmentFile(NamedTuple):
    """What a file's name says: whose it is, which one of the family, and whether it is in passing."""

    base_offset: int
    suffix: str
    passing: str


class PartitionDir(NamedTuple):
    """What a directory's name says; `mark` is empty for a partition in service."""

    topic: str
    partition: int
    mark: str


def segment_stem(base_offset: int) -> str:
    """Return the twenty digits that all files of a segment begin with."""
    return f"{base_offset:020d}"


def parse_segment_file(name: str) -> SegmentFile | None:
    """Read a file name, or return None when it is no file of a segment."""
    match = _SEGMENT_FILE.fullmatch(name)
    if match is None:
        return None
    return SegmentFile(int(match[1]), match[2], match[3] or "")


def partition_dir(topic: str, partition: int) -> str:
    """Return the name of a partition's directory."""
    return f"{topic}-{partition}"


def marked_dir(topic: str, partition: int, unique: bytes, mark: str) -> str:
    """Return the name of a partition's directory on its way in or out; long topic names are cut for the file system."""
    ending = f"-{partition}.{unique.hex()}{mark}"
    if mark == FUTURE_DIR:
        return topic + ending
    return topic[: _DIR_NAME_BYTES_MAX - len(ending)] + ending


def parse_partition_dir(name: str) -> PartitionDir | None:
    """Read a directory name, or return None when it is no partition's."""
    mark = ""
    for ending in (DELETE_DIR, FUTURE_DIR, STRAY_DIR):
        if name.endswith(ending):
            if _MARKED_DIR.fullmatch(name) is None:
                return None
            mark = ending
            name = name[: name.rindex(".")]
            break
    topic, dash, partition = name.rpartition("-")
    if not topic or not dash or not partition.isascii() or not partition.isdigit():
        return None
    return PartitionDir(topic, int(partition), mark)
