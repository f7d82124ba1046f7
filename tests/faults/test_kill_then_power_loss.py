"""A kill between write and sync, a start, and then the power goes: `ottla.flush=ack` holds over both.

What a killed process wrote is in the page cache: the next one finds it, and a retry is told it is there already.
"""

import errno
import random
import threading

from ottla.wire.errors import ErrorCode
from tests.faults.by_hand import batch, hand
from tests.faults.forgetful_disk import ForgetfulDisk
from tests.faults.node_thread import NodeThread

_LOSING = 3  # a chance that takes what was not synced


def test_a_retry_that_is_found_to_be_there_survives_a_power_loss() -> None:
    disk = ForgetfulDisk()
    runner = NodeThread(disk, {"ottla.flush": "ack"}).format().start()
    syncing, killed = threading.Event(), threading.Event()

    def before(what: str, path: str) -> None:
        if what == "sync" and "/t-0/" in path and path.endswith(".log"):
            syncing.set()
            killed.wait(20)
            raise OSError(errno.EIO, "killed", path)

    with hand(runner.port) as client:
        assert client.create_topic("t", 1) is ErrorCode.NONE
        producer_id, epoch = client.init_producer()
        data = bytes(batch(b"v", producer_id=producer_id, epoch=epoch, sequence=0))
        disk.before = before
        client.send_produce("t", data)
        assert syncing.wait(10)
        cache = ForgetfulDisk(disk.root)  # which outlives the process
        disk.dead = True
        killed.set()
    runner.abandon()
    runner.disk = cache
    runner.start()
    with hand(runner.port) as client:
        assert client.produce("t", data) == (ErrorCode.NONE, 0)
        assert len(client.read_all("t")) == len(data)
    left = cache.power_loss(random.Random(_LOSING))
    runner.abandon()
    runner.disk = left
    with runner, hand(runner.port) as client:
        assert len(client.read_all("t")) == len(data)
