"""What a log asks of the directory it lives in."""

from typing import Protocol

from ottla.log.segment import Segment


class Home(Protocol):
    """The door from a log to its log directory."""

    def warn(self, text: str) -> None:
        """Tell the operator."""
        ...

    def touch(self, segment: Segment) -> None:
        """Note that an inactive segment was read, so that another one may rest."""
        ...

    def doom(self, paths: list[str], delay_ms: int) -> None:
        """Have files or directories removed after a while."""
        ...

    def fail(self, error: OSError) -> None:
        """Take the directory out of service: what was written there can no longer be trusted to stay."""
        ...

    def rest_idle(self) -> None:
        """Give back the descriptors of logs that nobody uses."""
        ...

    def draw_below(self, bound: int) -> int:
        """Draw a number in [0, bound)."""
        ...

    def draw_id(self) -> bytes:
        """Draw sixteen random bytes."""
        ...
