"""What Spark's processes say that is of no use to anybody.

A task that fails is told by an error. The Python process that ran it may have something left to say when Java has hung
up on it, and then says so with a traceback of PySpark's own; whether a traceback is such a one its last line tells.
"""

_MUTED = (
    "WARNING: Using incubator modules:",
    "WARNING: package sun.security.action not in java.base",
    "NOTE: Picked up JDK_JAVA_OPTIONS:",
    # And what a worker of stateful operators says of itself, with all its types, for every query.
    "Starting Streaming TransformWithState",
    "Streaming TransformWithState",
)
_TRACEBACK = "Traceback (most recent call last):"
_DAEMON = "pyspark/daemon.py"
_HUNG_UP = ("BrokenPipeError", "ConnectionResetError")


class Muting:
    """Says of each line whether it is to be dropped, or None where that is as with the next one."""

    def __init__(self) -> None:
        self._lines = 0  # of a traceback, so far

    def __call__(self, line: str) -> bool | None:
        """Take a line."""
        if not self._lines:
            if line == _TRACEBACK:
                self._lines = 1
                return None
            return not line or line.startswith(_MUTED)
        if self._lines == 1 and _DAEMON not in line:
            self._lines = 0
            return False
        if line.startswith(" "):
            self._lines += 1
            return None
        self._lines = 0
        return line.startswith(_HUNG_UP)
