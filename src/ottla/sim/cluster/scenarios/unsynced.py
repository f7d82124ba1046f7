"""Machines lose their power, one at a time, and with it what they have not synced, though it was acknowledged.

With `ottla.flush=os`, as in Kafka, one lossy stop at a time has to be borne: the others in sync have everything.
"""

from dataclasses import replace

from ottla.sim.cluster.scenarios import power

SCENARIO = replace(power.SCENARIO, name="unsynced", properties={"ottla.flush": "os"})
