"""What an append did."""

from typing import NamedTuple


class Appended(NamedTuple):
    """What an append did: the offsets it took, or those it took the first time for a duplicate."""

    base_offset: int
    end_offset: int
    log_append_time_ms: int = -1
    duplicate: bool = False
