"""Copiers join while the end of a transaction is decided, and the coordinator of their group has not heard of it.

The topics of the coordinators have one replica: else a slow link holds back the group's own records just as long.
"""

from ottla.sim.cluster.scenarios.scenario import Scenario

SCENARIO = Scenario(
    "newcomers",
    {"newcomers": 1},
    count=(1, 1),
    lasts_s=(1.5, 3.0),
    span_s=2.0,
    work={"produce": 100, "copy": 100},
    properties={
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    },
)
