"""Everything at once."""

from ottla.sim.cluster.scenarios.scenario import Scenario

SCENARIO = Scenario(
    "everything",
    {
        "kill": 3,
        "killing of all": 1,
        "killing in turn": 2,
        "restart": 2,
        "pause": 3,
        "isolation": 2,
        "cut": 2,
        "one-way cut": 3,
        "cut from clients": 1,
        "slowness": 1,
        "resets": 1,
        "death of a client": 2,
        "stop of a client": 1,
    },
    count=(5, 10),
)
