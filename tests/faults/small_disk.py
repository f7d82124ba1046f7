"""A file system of a few megabytes: a tmpfs, where this user may mount one."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_file_system(where: Path, size_bytes: int) -> Iterator[Path]:
    """Mount a tmpfs of that size; the test is skipped where that is not allowed."""
    where.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "ottla-test", str(where)]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no mount command here, so no small file system can be made")
    if done.returncode != 0:
        pytest.skip(f"this user may not mount a small file system: {done.stderr.strip()}")
    try:
        yield where
    finally:
        subprocess.run(["umount", "--lazy", str(where)], check=True)


def free_bytes(where: Path) -> int:
    """The room that is left."""
    stat = os.statvfs(where)
    return stat.f_bavail * stat.f_frsize
