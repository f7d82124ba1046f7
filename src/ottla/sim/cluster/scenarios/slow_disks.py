"""Disks take long to sync and to write; now and then machines lose their power meanwhile."""

from ottla.sim.cluster.scenarios.scenario import Scenario

SCENARIO = Scenario(
    "slow-disks", {"slow disk": 5, "blackout": 1, "power loss": 1}, count=(3, 5), lasts_s=(0.5, 4.0), span_s=10.0
)
