"""Whose connection it is: the process that holds the socket of a local port."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path


def owner(port: int, among: Iterable[int]) -> int | None:
    """Which of these processes has the connection from this port of the loopback, if any."""
    sockets = {f"socket:[{inode}]" for inode in _inodes(port)}
    for pid in among:
        with contextlib.suppress(OSError):
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    if os.readlink(descriptor) in sockets:
                        return pid
    return None


def _inodes(port: int) -> list[str]:
    found = []
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if int(fields[1].rpartition(":")[2], 16) == port:
                found.append(fields[9])
    return found
