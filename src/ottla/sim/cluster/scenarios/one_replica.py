"""Topics with one replica, which is what the compiled request path appends to, and answers readers of, by itself.

With `ottla.flush=ack` an acknowledged record is on the disk, so a machine that loses its power loses none of them.
"""

from ottla.sim.cluster.scenarios.scenario import Scenario

SCENARIO = Scenario(
    "one-replica",
    {"kill": 3, "power loss": 3, "restart": 2, "pause": 1, "cut from clients": 1, "resets": 2},
    count=(3, 6),
    lasts_s=(0.3, 3.0),
    work={"produce": 100, "consume": 100, "copy": 30},
    properties={"min.insync.replicas": "1"},
    replicas=1,
)
