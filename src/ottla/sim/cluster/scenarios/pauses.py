"""Processes stop in their tracks, for as long as others take them for dead, and go on."""

from ottla.sim.cluster.scenarios.scenario import Scenario

SCENARIO = Scenario("pauses", {"pause": 5, "slowness": 1, "stop of a client": 3}, lasts_s=(0.3, 9.0))
