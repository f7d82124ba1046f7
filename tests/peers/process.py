"""What the kernel says of a server process and its children: CPU time, memory, threads.

Everything is read from /proc, so that the client that drives the server is never counted.
A server that forks is charged for its children, too, for those that have ended as well.
"""

import os
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def family(pid: int) -> list[int]:
    """The process and every living descendant."""
    members, waiting = [], [pid]
    while waiting:
        current = waiting.pop()
        members.append(current)
        for task in Path(f"/proc/{current}/task").glob("*"):
            try:
                waiting += [int(child) for child in (task / "children").read_text().split()]
            except OSError:  # the thread ended between listing and reading
                continue
    return members


def cpu_seconds(pid: int) -> float:
    """User and system time used so far, of all threads."""
    ticks = 0
    for member in family(pid):
        # The command, in parentheses, may hold spaces: the fields are counted from behind it.
        try:
            fields = Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # it ended between listing and reading, and its parent is charged for it
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / TICKS_PER_SECOND


def resident_bytes(pid: int) -> int:
    """Memory resident now."""
    return sum(_status_kilobytes(member, "VmRSS") for member in family(pid)) * 1024


def resident_bytes_max(pid: int) -> int:
    """The most memory that was ever resident."""
    return sum(_status_kilobytes(member, "VmHWM") for member in family(pid)) * 1024


def _status_kilobytes(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    return 0
