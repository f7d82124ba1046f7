"""Fetches that wait at the leader for something to tell."""

from typing import NamedTuple

from ottla.raft.event import Request


class Parked(NamedTuple):
    """One fetch; it has waited long enough at `deadline`."""

    request: Request
    fetch_offset: int
    size_bytes_max: int
    deadline: int
