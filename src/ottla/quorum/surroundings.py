"""What the driver of a quorum needs from outside: disk, clock, a worker for syncs, and somebody to tell."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ottla.raft.settings import Node, RaftSettings
from ottla.raft.voters import Address, Voters
from ottla.world.clock import Clock
from ottla.world.disk import Disk
from ottla.world.worker import InlineWorker, Worker

MIB = 1024 * 1024
HOUR_MS = 3_600_000


def _ignore(_: object) -> None:
    """Tell nobody."""


def _never(bound: int) -> int:
    """Draw nothing: who is alone needs no jitter."""
    return 0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The doors of one quorum member.

    `later` runs a callback soon, once the work at hand is done; None does it at once, for tools without a loop.
    """

    disk: Disk
    clock: Clock
    worker: Worker = field(default_factory=InlineWorker)
    later: Callable[[Callable[[], None]], object] | None = None
    warn: Callable[[str], None] = _ignore
    fail: Callable[[OSError], None] = _ignore
    # Calls after so many seconds; what it returns has `cancel()`. None for tools without a loop.
    call_later: Callable[[float, Callable[[], object]], Any] | None = None
    draw: Callable[[int], int] = _never


@dataclass(frozen=True, slots=True)
class QuorumSettings:
    """Who this node is in the quorum, and how its log is kept.

    `voters` are those of `controller.quorum.voters`; None in a dynamic quorum, whose voters stand in the log.
    """

    node_id: int
    directory: str  # metadata.log.dir
    directory_id: bytes
    addresses: tuple[Address, ...] = ()
    voters: Voters | None = None
    segment_bytes: int = 1024 * MIB
    segment_ms: int = 7 * 24 * HOUR_MS
    snapshot_bytes: int = 20 * MIB  # metadata.log.max.record.bytes.between.snapshots
    snapshot_interval_ms: int = HOUR_MS
    retention_bytes: int = 100 * MIB
    retention_ms: int = 7 * 24 * HOUR_MS
    cluster_id: str = ""
    bootstrap: tuple[Node, ...] = ()  # whom to ask when nobody is known to lead
    listener: str = "CONTROLLER"
    can_vote: bool = True
    auto_join: bool = False
    election_timeout_ms: int = 1_000
    election_backoff_ms_max: int = 1_000
    fetch_timeout_ms: int = 2_000
    request_timeout_ms: int = 2_000
    retry_backoff_ms: int = 20

    def raft(self) -> RaftSettings:
        """What Raft is told of it."""
        return RaftSettings(
            self.node_id,
            self.directory_id,
            self.cluster_id,
            self.addresses,
            self.bootstrap,
            self.listener,
            self.can_vote,
            self.auto_join,
            self.election_timeout_ms,
            self.election_backoff_ms_max,
            self.fetch_timeout_ms,
            self.request_timeout_ms,
            self.retry_backoff_ms,
        )
