"""One machine after the other goes, and the last one loses its power; nothing is synced before it is acknowledged.

With `ottla.flush=os` an acknowledged record is in the memory of all that are in sync, as in Kafka. That bears one lossy
stop less than `min.insync.replicas` asks for: whoever left last in order has everything, and must lead (KIP-966).
"""

from ottla.sim.cluster.scenarios.scenario import Scenario

SCENARIO = Scenario(
    "last-standing",
    {"last replica standing": 1},
    count=(1, 1),
    lasts_s=(0.2, 1.5),
    span_s=2.0,
    work={"produce": 100, "consume": 100},
    properties={"ottla.flush": "os"},
)
