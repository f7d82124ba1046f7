"""The file `bootstrap.checkpoint`: what the first controller of a cluster writes into an empty log."""

from collections.abc import Iterable, Iterator

from ottla.metadata.content import feature_records
from ottla.metadata.feature import METADATA_VERSION_MAX, default_levels
from ottla.quorum.checkpoint import checkpoint_batches, read_checkpoint
from ottla.wire.message import Message
from ottla.world.disk import Disk

FILE_NAME = "bootstrap.checkpoint"


def read_bootstrap(disk: Disk, directory: str) -> Iterator[Message]:
    """The records a new cluster begins with: those of the file, or the default features where there is none.

    The file is not looked at before the first record is asked for: a cluster that has begun needs it no more, and must
    not fail because of it.
    """
    path = f"{directory}/{FILE_NAME}"
    if disk.exists(path):
        yield from read_checkpoint(disk.read_bytes(path), path).records
    else:
        yield from feature_records(default_levels())


def write_bootstrap(disk: Disk, directory: str, records: Iterable[Message], now_ms: int) -> None:
    """Write the file."""
    batches = checkpoint_batches(records, metadata_version=METADATA_VERSION_MAX, now_ms=now_ms)
    disk.write_atomic(f"{directory}/{FILE_NAME}", b"".join(batches))
