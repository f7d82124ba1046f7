"""Putting cleaned segments in the place of the ones they were made from.

X1  A crash at any point leaves the old segments or the new ones: while a `.cleaned` file exists the old ones count;
    once all new files are `.swap`, loading finishes the exchange.
X2  An exchange that breaks off between the two, even for want of room, fails the directory: the log in memory is then
    not the one that the next start would find.
"""

import errno

from ottla.log import names
from ottla.log.segment import Segment
from ottla.world.disk import Disk


def replace(
    disk: Disk, directory: str, segments: list[Segment], new: list[Segment], old: list[Segment]
) -> list[Segment]:
    """Exchange segments in the list and on disk; return those that now carry `.deleted`."""
    new = sorted(new, key=lambda segment: segment.base_offset)
    gone = [segment for segment in segments if segment in old]
    for segment in new:
        for path in segment.paths():
            file = disk.open(path)
            try:
                file.sync()
            finally:
                file.close()
    try:
        _exchange(disk, directory, segments, new, gone)
    except OSError as error:
        raise OSError(errno.EIO, f"an exchange of segments broke off: {error}", directory) from error
    return gone


def _exchange(
    disk: Disk, directory: str, segments: list[Segment], new: list[Segment], gone: list[Segment]
) -> None:
    # From the last to the first: a `.swap` file above the least `.cleaned` one is part of an exchange not yet begun.
    for segment in reversed(new):
        segment.rename(names.SWAP)
    disk.sync_dir(directory)
    for segment in gone:
        segments.remove(segment)
        segment.rename(names.DELETED)
    for segment in new:
        segment.rename("")
        segments.append(segment)
    segments.sort(key=lambda segment: segment.base_offset)
    disk.sync_dir(directory)
