"""The power of all machines goes at once.

With `ottla.flush=ack` an acknowledged record is on the disks of all that are in sync, so nothing of it may be lost.
"""

from ottla.sim.cluster.scenarios.scenario import Scenario

SCENARIO = Scenario("blackout", {"blackout": 1}, count=(1, 2), lasts_s=(0.5, 4.0))
