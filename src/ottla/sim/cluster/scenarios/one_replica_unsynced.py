"""Topics with one replica and `ottla.flush=os`: a record is acknowledged, and shown, once the system has it.

That bears every death of a process, and no loss of power.
"""

from ottla.sim.cluster.scenarios.scenario import Scenario

SCENARIO = Scenario(
    "one-replica-unsynced",
    {"kill": 4, "restart": 2, "pause": 1, "cut from clients": 1, "resets": 2, "death of a client": 1},
    count=(3, 6),
    lasts_s=(0.3, 3.0),
    work={"produce": 100, "consume": 100, "copy": 30},
    properties={"ottla.flush": "os", "min.insync.replicas": "1"},
    replicas=1,
)
