"""Errors of the operating system that our own argument caused: a bug of ours, and no word about the disk.

A negative length, a closed descriptor or a name that is too long fails on every disk alike. Whoever meets such an error
has it reported with the way it came, and answers for the one partition alone; no directory goes offline over it.
"""

import errno
import traceback
from collections.abc import Callable

_CODES = frozenset(
    (
        *(errno.EINVAL, errno.EBADF, errno.ESPIPE, errno.EFAULT, errno.ENAMETOOLONG),
        *(errno.E2BIG, errno.EDOM, errno.ERANGE, errno.EOVERFLOW),
    )
)
_TOLD_MAX = 10


def is_own_fault(error: OSError) -> bool:
    """Say whether an error speaks of what we asked for, and not of the disk."""
    return error.errno in _CODES


class Bugs:
    """Reports such errors: the first ten with the way they came, then each time their number has doubled."""

    __slots__ = ("_warn", "total")

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self.total = 0

    def report(self, error: BaseException) -> None:
        """Count an error, and tell the operator of it."""
        self.total += 1
        if self.total <= _TOLD_MAX or self.total & (self.total - 1) == 0:
            way = "".join(traceback.format_exception(error)).rstrip()
            self._warn(f"a bug of Ottla, please report it ({self.total} so far): {way}")
