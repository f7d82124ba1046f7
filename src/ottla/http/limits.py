"""How much of anything a client may take of an HTTP service."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes, times in seconds; `settings.py` says under which names they are set."""

    body_bytes_max: int = 10 << 20
    held_bytes_max: int = 64 << 20
    head_bytes_max: int = 64 << 10
    connections_max: int = 1000
    requests_max: int = 500
    timeout_s: float = 60.0
    idle_s: float = 30.0
    stop_s: float = 5.0
