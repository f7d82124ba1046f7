"""The world of one seed: a cluster, the perils it is in, and the chance that a scenario draws from.

Whatever makes a run harder is a peril with a name. A run can be repeated without some of them, which is how a failure
is shrunk: each peril that it does not need is left out.
"""

from collections.abc import Collection

from ottla.sim.checkers.checker import Checker
from ottla.sim.checkers.committed_kept import CommittedKept
from ottla.sim.checkers.consistent_data import ConsistentData
from ottla.sim.checkers.leader_complete import LeaderComplete
from ottla.sim.checkers.leader_informed import LeaderInformed
from ottla.sim.checkers.leader_keeps_log import LeaderKeepsLog
from ottla.sim.checkers.majority_reached import MajorityReached
from ottla.sim.checkers.membership_matches import MembershipMatches
from ottla.sim.checkers.monotonic_epoch import MonotonicEpoch
from ottla.sim.checkers.monotonic_watermark import MonotonicWatermark
from ottla.sim.checkers.outline_matches import OutlineMatches
from ottla.sim.checkers.single_leader import SingleLeader
from ottla.sim.checkers.snapshot_at_start import SnapshotAtStart
from ottla.sim.checkers.stale_leader import StaleLeader
from ottla.sim.checkers.synced_before_said import SyncedBeforeSaid
from ottla.sim.quorum.cluster import Cluster
from ottla.world.entropy import SeededEntropy

# ConsistentData comes first: it writes the history that others read.
CHECKERS: tuple[type[Checker], ...] = (
    ConsistentData,
    SingleLeader,
    SyncedBeforeSaid,
    CommittedKept,
    LeaderComplete,
    LeaderInformed,
    LeaderKeepsLog,
    MajorityReached,
    MonotonicEpoch,
    MonotonicWatermark,
    SnapshotAtStart,
    OutlineMatches,
    MembershipMatches,
    StaleLeader,
)
# A node that loses its disk takes with it what it had promised.
LOST_WITH_A_DISK: tuple[type[Checker], ...] = (MajorityReached, MonotonicEpoch)
WIRE_EVERY = 16  # seeds; in one of so many, messages pass through their bytes
PATIENCE = {
    "election_timeout_ms": 1_000,
    "fetch_timeout_ms": 2_000,
    "request_timeout_ms": 1_500,
    "retry_backoff_ms": 150,
    "snapshot_bytes_max": 150,
}
SMALL_FETCH_BYTES = 200  # a batch or two


class World:
    """One run."""

    def __init__(
        self, seed: int, without: Collection[str] = (), skipped: Collection[type[Checker]] = ()
    ) -> None:
        self.seed = seed
        self.without = frozenset(without)
        self.perils: list[str] = []  # those that this run had
        self.entropy = SeededEntropy(seed)
        self.cluster = Cluster(seed, [checker() for checker in CHECKERS if checker not in skipped])
        self.cluster.is_encoded = seed % WIRE_EVERY == 0

    def draw(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""
        return low + self.entropy.below(high - low + 1)

    def choose(self, ids: Collection[int]) -> int:
        """One of these."""
        ordered = sorted(ids)
        return ordered[self.entropy.below(len(ordered))]

    def meets(self, peril: str) -> bool:
        """True unless the run is to go without this peril."""
        if peril in self.without:
            return False
        self.perils.append(peril)
        return True

    def form(
        self, voters: tuple[int, int], observers: tuple[int, int] = (0, 0), *, dynamic: bool | None = None
    ) -> Cluster:
        """Make a cluster of some size, start it, and let records be written to it."""
        cluster, network = self.cluster, self.cluster.network
        count = self.draw(*voters)
        extra = self.draw(*observers)
        is_dynamic = self.draw(0, 1) == 1
        cluster.is_dynamic = is_dynamic if dynamic is None else dynamic
        interval_ms = self.draw(40, 240)
        network.delay_ms = (1, self.draw(1, 12))
        noise = self.draw(0, 3)
        sync_ms = self.draw(0, 12)
        if noise & 1 and self.meets("loss"):
            network.loss = 0.01
        if noise & 2 and self.meets("repeats"):
            network.repeats = 0.01
        if noise == 3 and self.meets("spikes"):
            network.spikes = 0.005
        if not self.meets("observers"):
            extra = 0
        settings = dict(PATIENCE)
        if noise >= 2 and self.meets("small fetches"):
            settings["fetch_bytes_max"] = SMALL_FETCH_BYTES
        cluster.form(range(1, count + 1), range(11, 11 + extra), **settings)
        if sync_ms and self.meets("slow disks"):
            for node in cluster.nodes.values():
                node.sync_ms = (0, sync_ms)
        cluster.tears = True
        cluster.start_all()
        cluster.keep_proposing(interval_ms)
        return cluster

    def grow(self, count: int, ids: Collection[int] | None = None, limit_ms: int = 60_000) -> int:
        """Run until all nodes that run, of these or of all, have so many more records committed."""
        cluster = self.cluster
        goal = max(cluster.highest_watermark(), 0) + count
        cluster.run_until(
            lambda: cluster.all_reached(goal, ids), f"all have {goal} records committed", limit_ms
        )
        return goal

    def settle(self) -> None:
        """Run until somebody leads and records are being committed."""
        cluster = self.cluster
        cluster.run_until(cluster.agrees, "all follow one leader")
        cluster.run_until(lambda: cluster.highest_watermark() >= 10, "somebody has 10 records committed")

    def leader_id(self) -> int:
        """The leader of the highest epoch; there has to be one."""
        leader = self.cluster.latest_leader()
        if leader is None:
            self.cluster.run_until(lambda: self.cluster.latest_leader() is not None, "somebody leads")
            leader = self.cluster.latest_leader()
        assert leader is not None
        return leader.id

    def recover(self) -> None:
        """End all perils, start whoever is down, and see that all goes on: what is healed has to heal."""
        cluster, network = self.cluster, self.cluster.network
        network.heal()
        network.loss = network.repeats = network.spikes = 0.0
        cluster.start_all()
        self.grow(10)
