"""The power goes at any moment, under load: with `ottla.flush=ack` nothing acknowledged is lost.

The node runs on a disk that keeps what was synced, and of the rest what chance leaves (forgetful_disk.py). Each round
starts on what the one before left behind.
"""

import random
import time

import pytest

from tests.faults.forgetful_disk import ForgetfulDisk
from tests.faults.load import Load
from tests.faults.node_thread import NodeThread
from tests.faults.seeds import count, seeded

SETTINGS = {
    "ottla.flush": "ack",
    "log.flush.offset.checkpoint.interval.ms": "50",
    "replica.high.watermark.checkpoint.interval.ms": "50",
    # Metadata snapshots now and then, so that a power loss meets one.
    "metadata.log.max.record.bytes.between.snapshots": "2000",
}
TOPIC = {"segment.bytes": str(1 << 20), "index.interval.bytes": "1024"}


@pytest.mark.parametrize(
    "losses",
    [
        pytest.param(count("OTTLA_KILLS", 10), id="short"),
        pytest.param(count("OTTLA_KILLS", 300), id="soak", marks=pytest.mark.long),
    ],
)
def test_power_loss_under_load_loses_nothing(losses: int) -> None:
    chance = seeded(__file__, OTTLA_KILLS=losses)
    disk = ForgetfulDisk()
    runner = NodeThread(disk, SETTINGS).format().start()
    load = Load(runner.bootstrap, random.Random(chance.random()), topic_settings=TOPIC)
    load.start()
    try:
        for _ in range(losses):
            load.wait_for(chance.randrange(300))
            time.sleep(chance.uniform(0, 0.05))
            runner.disk = disk = lose_power(disk, runner, chance)
            runner.start()
        load.stop()
        acknowledged = load.check()
    finally:
        runner.stop()
    with runner:
        assert load.check() == acknowledged
    print(f"{losses} power losses, {acknowledged} acknowledged records")


def lose_power(disk: ForgetfulDisk, runner: NodeThread, chance: random.Random) -> ForgetfulDisk:
    left = disk.power_loss(chance)
    runner.abandon()
    return left
