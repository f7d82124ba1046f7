"""Linux's syncfs(2), for which Python has no name."""

import ctypes
import os
import re
from collections.abc import Callable
from functools import cache

# Before, it kept silent about data that could not be written.
_SPEAKS_SINCE = (5, 8)


@cache
def find_syncfs() -> Callable[[int], int] | None:
    """Return Linux's syncfs(2), where it is there and reports failures."""
    version = re.match(r"(\d+)\.(\d+)", os.uname().release)
    if version is None or (int(version[1]), int(version[2])) < _SPEAKS_SINCE:
        return None
    # Found nowhere but on Linux.
    return getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
