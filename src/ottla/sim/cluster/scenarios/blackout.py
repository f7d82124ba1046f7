"""The power of all machines goes at once."""

from ottla.sim.cluster.scenarios.scenario import Scenario

SCENARIO = Scenario("blackout", {"blackout": 1}, count=(1, 2), lasts_s=(0.5, 4.0))
