"""Links are cut: both ways, one way, around a node, between nodes and clients; and some are slow."""

from ottla.sim.cluster.scenarios.scenario import Scenario

SCENARIO = Scenario(
    "cuts",
    {"isolation": 3, "cut": 3, "one-way cut": 4, "cut from clients": 2, "slowness": 2, "resets": 2},
    lasts_s=(0.5, 9.0),
)
