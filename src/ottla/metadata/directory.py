"""Directory ids: which of a broker's log directories holds a replica (KIP-858).

Ids below 100 are reserved; three of them mean something.
"""

from collections.abc import Collection

MIGRATING = bytes(16)
UNASSIGNED = bytes(15) + b"\x01"
LOST = bytes(15) + b"\x02"
RESERVED_BELOW = 100


def is_reserved(directory: bytes) -> bool:
    """True for the ids that no real directory may have."""
    return not any(directory[:15]) and directory[15] < RESERVED_BELOW


def is_online(directory: bytes, online: Collection[bytes]) -> bool:
    """True when a replica in `directory` may be served by a broker whose directories `online` work.

    A replica that has no directory yet, or whose broker says nothing of its directories, gets the benefit of the doubt.
    """
    if directory == LOST:
        return False
    if directory in {UNASSIGNED, MIGRATING}:
        return True
    return not online or directory in online
