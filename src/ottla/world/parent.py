"""A process that does not outlive the one that started it."""

import os
import signal

_PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> bool:
    """Be killed by the kernel when the parent ends, however it ends; False when it is gone already.

    Where the system has no such thing, nothing happens: the parent has to end its children itself.
    """
    import ctypes

    try:
        prctl = ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):
        return os.getppid() == parent
    prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL))
    return os.getppid() == parent  # it may have ended before the kernel was told


def process_id() -> int:
    """Return the number of this process."""
    return os.getpid()
