"""Machines lose their power, one at a time, so that what was not synced is gone."""

from ottla.sim.cluster.scenarios.scenario import Scenario

SCENARIO = Scenario("power", {"power loss": 4}, count=(2, 3), lasts_s=(0.5, 3.0), span_s=10.0)
