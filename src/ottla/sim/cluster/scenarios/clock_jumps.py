"""The wall clocks of machines jump by up to an hour, ahead and back; how long something takes is not theirs to say."""

from ottla.sim.cluster.scenarios.scenario import Scenario

SCENARIO = Scenario(
    "clock-jumps", {"clock jump": 6, "kill": 1, "death of a client": 2}, count=(3, 6), lasts_s=(0.5, 8.0)
)
