"""Members of a share group take records while nodes and members die, stop, are cut off, and have clocks that jump."""

from ottla.sim.cluster.scenarios.scenario import Scenario

SCENARIO = Scenario(
    "share-groups",
    {
        "kill": 3,
        "killing in turn": 1,
        "restart": 2,
        "power loss": 1,
        "pause": 2,
        "isolation": 2,
        "cut from clients": 1,
        "resets": 2,
        "slowness": 1,
        "death of a client": 3,
        "stop of a client": 2,
        "clock jump": 3,
    },
    count=(3, 6),
    lasts_s=(0.3, 5.0),
    work={"produce": 100, "share": 100},
)
