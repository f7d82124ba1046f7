"""The small files beside the logs: producer snapshots, checkpoints of offsets and epochs, identities, votes."""

from collections.abc import Callable
from pathlib import Path

from ottla.cli.amount import moment_text
from ottla.cli.dump.finding import Findings, Found, Problem
from ottla.log import checkpoint, names
from ottla.log.identity import META_PROPERTIES
from ottla.log.producer_snapshot import SnapshotError, decode_snapshot
from ottla.raft.election_state import FILE_NAME as QUORUM_STATE
from ottla.world.disk import RealDisk


def dump_producers(path: Path) -> Findings:
    """Yield every producer of a snapshot."""
    try:
        producers = decode_snapshot(path.read_bytes())
    except SnapshotError as error:
        yield Problem(str(error))
        return
    for each in producers:
        yield Found("producer", each._asdict() | {"time": moment_text(each.timestamp)})


def dump_offsets(path: Path) -> Findings:
    """Yield every line of a checkpoint of offsets."""
    yield from _lines(path, ("topic", "partition", "offset"))


def dump_epochs(path: Path) -> Findings:
    """Yield every line of a checkpoint of leader epochs."""
    yield from _lines(path, ("epoch", "start_offset"))


def _lines(path: Path, fields: tuple[str, ...]) -> Findings:
    try:
        lines = checkpoint.read_lines(RealDisk(), str(path), len(fields))
    except checkpoint.CheckpointError as error:
        yield Problem(str(error).removeprefix(f"{path} "))
        return
    for words in lines:
        try:
            entry = {
                name: word if name == "topic" else int(word) for name, word in zip(fields, words, strict=True)
            }
        except ValueError:
            yield Problem(f"{' '.join(words)} has something that is no number")
            continue
        yield Found("entry", entry)


def dump_properties(path: Path) -> Findings:
    """Yield the names and values of a properties file."""
    fields = {}
    for line in path.read_text("utf-8", "backslashreplace").splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.lstrip().startswith(("#", "!")):
            fields[name.strip()] = value.strip()
    yield Found("identity", fields)


def dump_partition(path: Path) -> Findings:
    """Yield what `partition.metadata` says."""
    fields = {}
    for line in path.read_text("utf-8", "backslashreplace").splitlines():
        name, colon, value = line.partition(":")
        if colon:
            fields[name.strip()] = value.strip()
    yield Found("partition", fields)


def dump_vote(path: Path) -> Findings:
    """Yield what `quorum-state` says."""
    import json

    try:
        fields = json.loads(path.read_bytes())
    except ValueError as error:
        yield Problem(str(error))
        return
    yield Found("vote", fields if isinstance(fields, dict) else {"content": fields})


DUMPS: dict[str, Callable[[Path], Findings]] = {
    checkpoint.RECOVERY_POINTS: dump_offsets,
    checkpoint.START_OFFSETS: dump_offsets,
    checkpoint.HIGH_WATERMARKS: dump_offsets,
    checkpoint.CLEANER_OFFSETS: dump_offsets,
    names.LEADER_EPOCHS: dump_epochs,
    names.PARTITION_METADATA: dump_partition,
    META_PROPERTIES: dump_properties,
    QUORUM_STATE: dump_vote,
}
