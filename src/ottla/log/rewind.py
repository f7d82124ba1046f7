"""The producers of a log as they were at an offset below its end: from a snapshot, and the batches behind it.

N1  It is planned on the loop, which takes microseconds, and may be run in a thread: that reads files of its own, which
    it opens by names that must be there still, and only what was there when it was planned.
N2  It holds for the log that it was planned for, as long as that has the same end.
"""

from typing import NamedTuple

from ottla.log import names
from ottla.log.producer_state import Producers
from ottla.log.replay import replay_from
from ottla.log.segment import Segment
from ottla.world.disk import Disk


class Span(NamedTuple):
    """Batches of a segment, from a position to another."""

    base_offset: int
    path: str
    position: int
    end_position: int


class Rewind:
    """What there is to be read, and once it was run the producers."""

    __slots__ = ("_directory", "_disk", "_end_offset", "_spans", "offset", "producers")

    def __init__(
        self, disk: Disk, directory: str, producers: Producers, spans: list[Span], offset: int, end_offset: int
    ) -> None:
        self._disk, self._directory = disk, directory
        self.producers = producers
        self._spans = spans
        self.offset = offset
        self._end_offset = end_offset

    @property
    def size_bytes(self) -> int:
        """How much there is to be walked over."""
        return sum(span.end_position - span.position for span in self._spans)

    def run(self) -> None:
        """Read."""
        for span in self._spans:
            segment = Segment(self._disk, self._directory, span.base_offset, {names.LOG: span.end_position})
            segment.file = self._disk.open(span.path, create=False)
            try:
                segment.file.size = min(segment.file.size, span.end_position)
                replay_from(self.producers, segment, span.position, self.offset)
            finally:
                segment.file.close()
        self.producers.end_offset = self.offset

    def fits(self, offset: int, end_offset: int) -> bool:
        """Say whether this is about a log that ends there, and is to be cut there (N2)."""
        return self.offset == offset == self.producers.end_offset and self._end_offset == end_offset


def plan(
    disk: Disk, directory: str, producers: Producers, segments: list[Segment], offset: int, end_offset: int
) -> Rewind:
    """Find out what has to be read to bring producers from where they stand to `offset`."""
    begin, spans = producers.end_offset, []
    for at, segment in enumerate(segments):
        following = segments[at + 1].base_offset if at + 1 < len(segments) else None
        if following is not None and following <= begin:
            continue
        if segment.base_offset >= offset:
            break
        first, behind = segment.locate(begin), segment.locate(offset)
        if first is not None:
            end = segment.file.size if behind is None else behind[0]
            spans.append(Span(segment.base_offset, segment.file.path, first[0], end))
    return Rewind(disk, directory, producers, spans, offset, end_offset)
