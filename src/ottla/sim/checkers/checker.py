"""What a checker is told. It overrides what it needs."""

from typing import TYPE_CHECKING

from ottla.sim.violation import Violation

if TYPE_CHECKING:
    from ottla.raft.event import Event
    from ottla.raft.ready import Ready, Reply, Send
    from ottla.sim.quorum.cluster import Cluster
    from ottla.sim.quorum.log import Entry
    from ottla.sim.quorum.node import SimNode


class Checker:
    """One invariant."""

    HOOKS = (
        "led",
        "wrote",
        "said",
        "cut_off",
        "trimmed",
        "advanced",
        "committed",
        "loaded",
        "announced",
        "started",
    )
    rule = ""
    cluster: "Cluster"

    def led(self, node: "SimNode", event: "Event") -> None:
        """A replica that leads has made a step."""

    def wrote(self, node: "SimNode", ready: "Ready") -> None:
        """A replica has asked for something to be written."""

    def said(self, node: "SimNode", word: "Send | Reply") -> None:
        """A node lets a word out."""

    def cut_off(self, node: "SimNode", entries: "list[Entry]", snapshot_offset: int | None) -> None:
        """A node has cut these off its log, for a snapshot that ends at an offset or for nothing."""

    def trimmed(self, node: "SimNode") -> None:
        """A node has removed the beginning of its log."""

    def advanced(self, node: "SimNode") -> None:
        """A replica knows more to be committed than before."""

    def committed(self, node: "SimNode", entries: "list[Entry]") -> None:
        """A node has handed these to its state machine."""

    def loaded(self, node: "SimNode") -> None:
        """A node has loaded a snapshot into its state machine."""

    def announced(self, node: "SimNode") -> None:
        """A node has told its state machine who leads."""

    def started(self, node: "SimNode") -> None:
        """A node is about to start from its disk."""

    def check(self, holds: bool, text: str) -> None:
        """Raise a Violation unless the law holds."""
        if not holds:
            raise Violation(self.rule, text)
