"""How far the source of a micro-batch has come, from the checkpoint of its query, where that can be read.

Spark writes the offsets of a batch down before it begins with it, one line for each source. Our own source says there
which topics it means by their ids, so a topic of another cluster, or one that was made anew, is not mistaken.
"""

import json
from collections.abc import Mapping

from ottla.client.cluster import Cluster
from ottla.client.record import TopicPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.uuid import uuid_text
from ottla.world.disk import Disk

_FILE = "file:"
_IDS = "#ids"


def local_path(checkpoint: str) -> str | None:
    """Return where a checkpoint is on this machine's disk; None if it is in another file system."""
    path = checkpoint.removeprefix(_FILE)
    if path.startswith("//"):
        path = path[2:]
    elif path is checkpoint and ":" in checkpoint.partition("/")[0]:
        return None
    return path.rstrip("/")


def source_offsets(disk: Disk, checkpoint: str, batch_id: int) -> dict[str, Mapping[TopicPartition, int]]:
    """Return the offsets behind a micro-batch by the ids of their topics; nothing where they are out of reach."""
    found: dict[str, Mapping[TopicPartition, int]] = {}
    for line in _lines(disk, checkpoint, batch_id)[2:]:
        for topic_id, offsets in _read(line):
            before = found.get(topic_id, {})
            # A topic that is read twice is read as far as the slower of the two is.
            found[topic_id] = {
                place: min(offset, before.get(place, offset)) for place, offset in offsets.items()
            }
    return found


def planned_ms(disk: Disk, checkpoint: str, batch_id: int) -> int | None:
    """Return when Spark has planned a micro-batch, by its own clock; None where that is out of reach."""
    for line in _lines(disk, checkpoint, batch_id)[1:2]:
        try:
            planned = json.loads(line)["batchTimestampMs"]
        except (ValueError, TypeError, KeyError):
            return None
        return planned if isinstance(planned, int) and planned > 0 else None
    return None


def _lines(disk: Disk, checkpoint: str, batch_id: int) -> list[str]:
    """Return what Spark has written down of a micro-batch: a version, a line of its own, one for each source."""
    path = local_path(checkpoint)
    file = f"{path}/offsets/{batch_id}"
    return [] if path is None or not disk.exists(file) else disk.read_bytes(file).decode().splitlines()


def _read(line: str) -> list[tuple[str, Mapping[TopicPartition, int]]]:
    # Sources with names have theirs before a colon.
    start = line.find("{")
    try:
        given = json.loads(line[start:]) if start >= 0 else None
    except ValueError:
        return []
    if not isinstance(given, dict) or not isinstance(given.get(_IDS), dict):
        return []
    return [
        (topic_id, {TopicPartition(name, int(number)): int(offset) for number, offset in given[name].items()})
        for name, topic_id in given[_IDS].items()
        if name in given
    ]


async def here(
    cluster: Cluster, source: Mapping[str, Mapping[TopicPartition, int]]
) -> dict[TopicPartition, int]:
    """Return the offsets of those topics that this cluster has."""
    found: dict[TopicPartition, int] = {}
    for topic_id, offsets in source.items():
        name = next(iter(offsets)).topic
        if name not in cluster.topics:
            await cluster.refresh([name], auto_create=False)
        topic = cluster.topics.get(name)
        if topic is not None and topic.error is ErrorCode.NONE and uuid_text(topic.id) == topic_id:
            found |= offsets
    return found
