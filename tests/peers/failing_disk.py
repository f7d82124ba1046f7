"""`ottla server` on a disk of which one directory can be broken: `python -m tests.peers.failing_disk DIR PROPERTIES`.

Once the file `DIR.broken` is there, whatever is written or synced below DIR fails with EIO, as on a disk that dies.
"""

import errno
import sys
from pathlib import Path
from typing import Any

from ottla.cli.main import main
from ottla.world.disk import RealDisk, RealFile

WRITES_OF_FILES = ("append", "write_at", "sync", "truncate")
WRITES_OF_DISKS = ("open", "rename", "make_dirs", "write_atomic", "sync_dir")


def break_below(directory: str) -> None:
    """Let writes fail from the moment on that the sign is there."""
    sign = Path(f"{directory}.broken")

    def guard(kind: type, name: str) -> None:
        work = getattr(kind, name)

        def guarded(self: Any, *arguments: Any, **how: Any) -> Any:
            path = self.path if isinstance(self, RealFile) else str(arguments[0])
            if path.startswith(directory) and sign.exists():
                raise OSError(errno.EIO, "Input/output error", path)
            return work(self, *arguments, **how)

        setattr(kind, name, guarded)

    for name in WRITES_OF_FILES:
        guard(RealFile, name)
    for name in WRITES_OF_DISKS:
        guard(RealDisk, name)


if __name__ == "__main__":
    break_below(sys.argv[1])
    sys.exit(main(["server", sys.argv[2]]))
