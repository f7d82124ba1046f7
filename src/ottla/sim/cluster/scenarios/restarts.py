"""Nodes are stopped in order and started again, and now and then one dies at it."""

from ottla.sim.cluster.scenarios.scenario import Scenario

SCENARIO = Scenario("restarts", {"restart": 6, "kill": 1, "slowness": 1}, lasts_s=(0.1, 2.0))
