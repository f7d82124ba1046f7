"""Disks fill up, in the middle of whatever is written then, and later there is room again."""

from ottla.sim.cluster.scenarios.scenario import Scenario

SCENARIO = Scenario(
    "full-disks", {"full disk": 6, "kill": 1, "restart": 1}, count=(2, 5), lasts_s=(0.5, 5.0), span_s=10.0
)
