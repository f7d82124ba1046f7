"""Waiting for a condition instead of sleeping for a guess."""

import time
from collections.abc import Callable


def eventually(condition: Callable[[], bool], seconds_max: float = 10.0) -> None:
    """Return once the condition holds; fail when it does not in time."""
    deadline = time.monotonic() + seconds_max
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.02)
