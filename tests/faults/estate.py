"""A data directory that a node has filled and left, cleanly or not, and what was acknowledged on the way.

Topic `torn` has two segments. The last one has 64 batches, of three idempotent producers and of one without an id, in
every codec. Other topics, a deletion and a metadata snapshot make the metadata log worth reading.
"""

import random
import time
from dataclasses import dataclass, field

from ottla.wire.compression import Codec
from ottla.wire.errors import ErrorCode
from tests.faults.by_hand import batch, hand, headers
from tests.faults.forgetful_disk import ForgetfulDisk
from tests.faults.node_thread import DATA, NodeThread
from tests.peers.deadline import eventually

TOPIC = "torn"
PARTITION = f"{DATA}/{TOPIC}-0"
BATCHES = 64
WEEK_MS = 7 * 86_400_000
SETTINGS = {
    "log.flush.offset.checkpoint.interval.ms": "20",
    "replica.high.watermark.checkpoint.interval.ms": "20",
    "metadata.log.max.record.bytes.between.snapshots": "1500",
}


@dataclass
class Sent:
    """A batch as it was sent and where it went."""

    data: bytes
    base_offset: int
    producer_id: int


@dataclass
class Estate:
    """The disk, what stands in the log of `torn`, and the batches of its last segment."""

    disk: ForgetfulDisk
    content: bytes = b""
    sent: list[Sent] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    last_base_offset: int = 0

    @property
    def last_segment(self) -> str:
        return f"{PARTITION}/{self.last_base_offset:020d}.log"


def fill(*, clean: bool) -> Estate:
    """Run a node, write the estate, and stop it, or leave it as a kill -9 does."""
    runner = NodeThread(ForgetfulDisk(), SETTINGS).format().start()
    estate = Estate(runner.disk)  # type: ignore[arg-type]
    chance = random.Random(64)
    with hand(runner.port) as client:
        for number in range(6):
            assert client.create_topic(f"other-{number}", 2) is ErrorCode.NONE
            estate.topics.append(f"other-{number}")
        assert client.create_topic(TOPIC, index_interval_bytes=600) is ErrorCode.NONE
        estate.topics.append(TOPIC)
        producers = [client.init_producer() for _ in range(3)]
        sequences = [0, 0, 0]
        # Two batches of last week make a first segment: the next one is more than segment.ms younger.
        for number in range(2):
            old = batch(b"old %d" % number, timestamp_ms=int(time.time() * 1000) - WEEK_MS - 60_000)
            code, base_offset = client.produce(TOPIC, old)
            assert code is ErrorCode.NONE
        estate.last_base_offset = base_offset + 1
        for number in range(BATCHES):
            who = number % 4
            values = [
                b"%d-%d " % (number, n) + b"v" * chance.randrange(30) for n in range(chance.randint(1, 3))
            ]
            codec = Codec(number % 5)
            if who == 3:
                data, producer_id = batch(*values, codec=codec), -1
            else:
                producer_id, epoch = producers[who]
                data = batch(
                    *values, codec=codec, producer_id=producer_id, epoch=epoch, sequence=sequences[who]
                )
                sequences[who] += len(values)
            code, base_offset = client.produce(TOPIC, data)
            assert code is ErrorCode.NONE
            estate.sent.append(Sent(data, base_offset, producer_id))
        estate.content = client.read_all(TOPIC)
        end_offset = client.end_offset(TOPIC)
    if clean:
        runner.stop()
        estate.disk = runner.disk.copy()  # type: ignore[attr-defined]
        return estate
    # What a kill leaves: the checkpoints may be there, the marker is not.
    path, line = f"{DATA}/recovery-point-offset-checkpoint", f"{TOPIC} 0 {end_offset}".encode()
    eventually(lambda: runner.disk.exists(path) and line in runner.disk.read_bytes(path))
    estate.disk = runner.disk.copy()  # type: ignore[attr-defined]
    runner.stop()
    return estate


def boundaries(data: bytes) -> list[int]:
    """Where each batch begins, and where the last one ends."""
    found = [0]
    for header in headers(data):
        found.append(found[-1] + header[1] + 12)
    return found
