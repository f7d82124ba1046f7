"""Where a task leaves what it would write until the driver writes it: in its message, or in a file that both can reach.

S1  A file is used where task and driver have the same local directory of Spark's, whose name Spark draws by chance: in
    local mode. Everywhere else the bytes travel with the message.
S2  Small things travel with the message anyway.
S3  The files of one micro-batch lie in one folder, which goes when the batch was written. What a failed
    attempt leaves lies there too, or is taken away by Spark with its directory.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.client.producer.batch import EncodedRecords
from ottla.spark.sink.encoding import Sealed
from ottla.world.disk import RealDisk
from ottla.world.entropy import RealEntropy
from ottla.world.shell import variable

_SMALL_BYTES = 256 << 10


class Folder(NamedTuple):
    """Where the files of one micro-batch would be, as the driver names it."""

    local: str | None
    name: str

    @classmethod
    def draw(cls) -> "Folder":
        """Return one that nobody else has."""
        return cls(local_directory(), f"ottla-{RealEntropy().uuid().hex()}")

    @property
    def path(self) -> str | None:
        """Its path, if it is within reach of this process."""
        return (
            f"{self.local}/{self.name}"
            if self.local is not None and self.local == local_directory()
            else None
        )


@dataclass(frozen=True, slots=True)
class Spool:
    """The batches of one task, in their order; where there is a file, their bytes lie there, one after another."""

    sealed: list[Sealed] = field(repr=False)
    folder: str | None = None
    file: str | None = None
    sizes: tuple[int, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, batches: Iterable[Sealed], folder: Folder, name: str) -> "Spool":
        """Take in what a task has encoded; `name` is the task's alone."""
        path = folder.path
        at_hand: list[Sealed] = []
        held = 0
        waiting = iter(batches)
        for each in waiting:
            at_hand.append(each)
            held += len(each.filled.buffer)
            if path is not None and held > _SMALL_BYTES:
                return cls._filed(at_hand, waiting, path, name)
        return cls(at_hand)

    @classmethod
    def _filed(cls, first: list[Sealed], rest: Iterator[Sealed], folder: str, name: str) -> "Spool":
        disk = RealDisk()
        disk.make_dirs(folder)
        file = disk.open(f"{folder}/{name}", size=0)
        heads: list[Sealed] = []
        sizes: list[int] = []
        try:
            for some in (first, rest):
                for each in some:
                    file.append(each.filled.buffer)
                    sizes.append(len(each.filled.buffer))
                    heads.append(each._replace(filled=each.filled._replace(buffer=bytearray())))
        finally:
            file.close()
        return cls(heads, folder, file.path, tuple(sizes))

    def batches(self) -> Iterator[Sealed]:
        """Yield the batches, each with a buffer of its own, so that they can be asked for again."""
        if self.file is None:
            for each in self.sealed:
                yield _with(each, bytearray(each.filled.buffer))
            return
        file = RealDisk().open(self.file, create=False)
        place = 0
        try:
            for each, size in zip(self.sealed, self.sizes, strict=True):
                yield _with(each, bytearray(file.read(place, size)))
                place += size
        finally:
            file.close()


def forget(folders: Iterable[str]) -> None:
    """Take the folders of a micro-batch away."""
    disk = RealDisk()
    for folder in folders:
        disk.remove_tree(folder)


def _with(sealed: Sealed, buffer: bytearray) -> Sealed:
    filled = sealed.filled
    return sealed._replace(filled=EncodedRecords(buffer, *filled[1:]))


def local_directory() -> str | None:
    """Return the local directory that Spark has given this process, if any."""
    found = variable("SPARK_LOCAL_DIRS")
    return None if found is None else found.split(",", 1)[0]
