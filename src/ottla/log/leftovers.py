"""What a directory has left of logs that were deleted: it goes in its time, or at once where a start needs the room."""

import contextlib

from ottla.log import names
from ottla.world.disk import Disk

# With less a start may fail, since it has to write: who leads, checkpoints, the first records of an epoch.
ROOM_BYTES_MIN = 64 << 20


def make_room(disk: Disk, path: str) -> None:
    """Where there is next to no room, remove the logs that are deleted already."""
    if disk.free_bytes(path) >= ROOM_BYTES_MIN:
        return
    for name in disk.list(path):
        found = names.parse_partition_dir(name)
        if found is not None and found.mark == names.DELETE_DIR:
            with contextlib.suppress(OSError):  # it is tried again later
                disk.remove_tree(f"{path}/{name}")
