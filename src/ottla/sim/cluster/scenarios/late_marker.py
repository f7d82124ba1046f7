"""A marker that ends a transaction comes a second time, late, when its producer has begun the next one."""

from ottla.sim.cluster.scenarios.scenario import Scenario

SCENARIO = Scenario(
    "late-marker",
    {"late marker": 1},
    count=(1, 1),
    lasts_s=(0.5, 1.5),
    span_s=2.0,
    work={"produce": 100, "copy": 100},
    properties={
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "replica.socket.timeout.ms": "2000",  # so soon it is sent again
    },
)
