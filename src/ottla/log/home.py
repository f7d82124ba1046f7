"""What a log asks of the directory it lives in."""

from typing import TYPE_CHECKING, Protocol

from ottla.log.segment import Segment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.log.files import LogFiles


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

    def before_truncations(self, cuts: "Sequence[tuple[LogFiles, int]]") -> None:
        """Let no checkpoint speak of what lies at these offsets or above, before a cut there; may raise OSError."""
        ...

    def fail(self, error: OSError) -> None:
        """Take the directory out of service: what was written there can no longer be trusted to stay."""
        ...

    def bug(self, error: BaseException) -> None:
        """Report an error that is no word about the disk but a fault of ours, and go on."""
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
