"""What a checker of whole clusters is told. It overrides what it needs."""

from typing import TYPE_CHECKING

from ottla.sim.violation import Violation

if TYPE_CHECKING:
    from ottla.sim.cluster.fleet import Fleet


class ClusterChecker:
    """One invariant."""

    rule = ""
    fleet: "Fleet"

    def look(self) -> None:
        """Look at the cluster, which is in the middle of something."""

    def finish(self) -> None:
        """Look at what there is in the end, when the cluster is well and all has been read."""

    def check(self, holds: bool, text: str) -> None:
        """Raise a Violation unless the law holds."""
        if not holds:
            raise Violation(self.rule, text)
