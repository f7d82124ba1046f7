"""Processes are killed: leaders, controllers, all at once, and clients."""

from ottla.sim.cluster.scenarios.scenario import Scenario

SCENARIO = Scenario(
    "deaths", {"kill": 4, "killing of all": 1, "killing in turn": 3, "death of a client": 2}, count=(3, 6)
)
