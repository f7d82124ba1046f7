"""Two leaders die, one soon after the other, and of those who follow the first, one has less of it than the other."""

from ottla.sim.cluster.scenarios.scenario import Scenario

SCENARIO = Scenario(
    "two-elections",
    {"two elections, the heir behind": 1, "two elections, the third behind": 1},
    count=(1, 1),
    lasts_s=(0.2, 1.5),
    span_s=2.0,
    work={"produce": 100, "consume": 60},
)
