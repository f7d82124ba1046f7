"""Readers are slow and windows small, so that answers and requests wait with whoever sends them."""

from ottla.sim.cluster.scenarios.scenario import Scenario

SCENARIO = Scenario(
    "slow-readers", {"slow readers": 5, "resets": 1, "kill": 1}, count=(2, 5), lasts_s=(0.5, 4.0), span_s=10.0
)
