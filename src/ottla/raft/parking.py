"""Fetches that wait at the leader for something to tell.

Whoever hangs up while it waits is not noticed here, so a wait is bounded, whatever was asked for, and so is the number
of those who wait: with more, the next one is told at once that there is nothing.
"""

from typing import NamedTuple

from ottla.raft.event import Request

WAIT_MS_MAX = 5_000
PARKED_MAX = 4_096


class Parked(NamedTuple):
    """One fetch; it has waited long enough at `deadline`."""

    request: Request
    fetch_offset: int
    size_bytes_max: int
    deadline: int
