"""The power goes at the n-th step of a node's life, for every n: what was acknowledged until then is there afterwards.

A life is a start, some work with rolls, deletions and metadata snapshots, a clean stop, another start and more work.
"""

import random
from dataclasses import dataclass, field

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from tests.faults.by_hand import Hand, batch, hand
from tests.faults.forgetful_disk import ForgetfulDisk
from tests.faults.node_thread import Hung, NodeThread
from tests.faults.seeds import count, seeded

SETTINGS = {
    "ottla.flush": "ack",
    "log.flush.offset.checkpoint.interval.ms": "10",
    "log.flush.start.offset.checkpoint.interval.ms": "10",
    "replica.high.watermark.checkpoint.interval.ms": "10",
    "log.retention.check.interval.ms": "10",
    "metadata.log.max.record.bytes.between.snapshots": "700",
    "log.segment.delete.delay.ms": "1",
}


@dataclass
class Told:
    """What the broker has promised."""

    there: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    records: dict[str, dict[int, bytes]] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)


class Fuse:
    """A hook that ends the disk at the n-th step that changes something."""

    def __init__(self, disk: ForgetfulDisk, steps: int) -> None:
        self._disk = disk
        self._left = steps
        self.blown = ""

    def __call__(self, what: str, path: str) -> None:
        if what == "read" or self.blown:
            return
        self._left -= 1
        if self._left < 0:
            self.blown = f"{what} {path}"
            self._disk.dead = True


def live(runner: NodeThread, told: Told) -> None:
    """One life, as long as it lasts."""
    runner.start()
    with hand(runner.port, seconds_max=5) as client:
        producer = client.init_producer()
        sequences: dict[str, int] = {}
        for number in range(3):
            name = f"topic-{number}"
            make(client, told, name)
            for turn in range(4):
                write(client, told, name, turn, producer, sequences)
        shorten(client, told, "topic-1", 2)
        remove(client, told, "topic-0")
    runner.stop()
    runner.start()
    with hand(runner.port, seconds_max=5) as client:
        make(client, told, "topic-3")
        for name in ("topic-1", "topic-2", "topic-3"):
            for turn in range(4, 7):
                write(client, told, name, turn, producer, sequences)
        remove(client, told, "topic-3")
    runner.stop()


class Refused(Exception):
    """The broker could not do what it was asked; the life is over."""


def make(client: Hand, told: Told, name: str) -> None:
    if client.create_topic(name, segment_bytes=1 << 20) is not ErrorCode.NONE:
        raise Refused(name)
    told.there.add(name)
    told.records[name] = {}


def write(
    client: Hand, told: Told, name: str, turn: int, producer: tuple[int, int], sequences: dict[str, int]
) -> None:
    value = b"%s %d " % (name.encode(), turn) + bytes(400_000)
    sequence = sequences.get(name, 0)
    data = batch(value, producer_id=producer[0], epoch=producer[1], sequence=sequence)
    code, offset = client.produce(name, data)
    if code is not ErrorCode.NONE:
        raise Refused(name)
    sequences[name] = sequence + 1
    told.records[name][offset] = value


def shorten(client: Hand, told: Told, name: str, offset: int) -> None:
    topic = DeleteRecordsRequest.DeleteRecordsTopic
    part = topic.DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(topics=[topic(name=name, partitions=[part])], timeout_ms=5000)
    answer = client.connection.ask(request, DeleteRecordsResponse, 2)
    if answer.topics[0].partitions[0].error_code:
        raise Refused(name)
    told.starts[name] = offset


def remove(client: Hand, told: Told, name: str) -> None:
    # From now on it may be either way.
    told.there.discard(name)
    request = DeleteTopicsRequest(topic_names=[name], timeout_ms=5000)
    if client.connection.ask(request, DeleteTopicsResponse, 5).responses[0].error_code:
        raise Refused(name)
    told.gone.add(name)


def check(runner: NodeThread, told: Told, what: str) -> None:
    with hand(runner.port, seconds_max=5) as client:
        known = {topic.name for topic in client.metadata().topics}
        assert told.there <= known, f"{what}: {told.there - known} are lost"
        assert not told.gone & known, f"{what}: {told.gone & known} have come back"
        for name in told.there:
            # DeleteRecords moves a mark that is checkpointed now and then; Kafka does not promise more either.
            start_offset = told.starts.get(name, 0)
            data = client.read_all(name, start_offset=start_offset)
            for offset, value in told.records[name].items():
                assert offset < start_offset or value in data, f"{what}: {name} has lost offset {offset}"
            code, _ = client.produce(name, batch(b"more"))
            assert code is ErrorCode.NONE, f"{what}: {name} answers {code.name}"
        assert client.create_topic("another") is ErrorCode.NONE, what


def end_after(steps: int, chance: random.Random) -> bool:
    """Let the power go after so many steps, and check what is left; say whether the life was longer than that."""
    disk = ForgetfulDisk()
    runner = NodeThread(disk, SETTINGS).format()
    fuse = disk.before = Fuse(disk, steps)
    told = Told()
    try:
        live(runner, told)
    except Hung:
        raise AssertionError(f"power gone at step {steps}, {fuse.blown}: the start hangs") from None
    except Exception:
        if not fuse.blown:
            raise
    finally:
        runner.abandon()
    what = f"power gone at step {steps}, {fuse.blown}"
    if not fuse.blown:
        return False
    runner.disk = disk.power_loss(chance)
    runner.errors.clear()
    with runner:
        check(runner, told, what)
    assert not runner.errors, (what, runner.errors)
    with runner:
        check_again(runner, told, what)
    return True


def check_again(runner: NodeThread, told: Told, what: str) -> None:
    with hand(runner.port, seconds_max=5) as client:
        for name in told.there:
            assert b"more" in client.read_all(name, start_offset=told.starts.get(name, 0)), what


@pytest.mark.parametrize(
    "every",
    [pytest.param(count("OTTLA_EVERY", 11), id="short"), pytest.param(1, id="soak", marks=pytest.mark.long)],
)
def test_power_loss_at_any_step(every: int) -> None:
    chance = seeded(__file__, OTTLA_EVERY=every)
    steps = chance.randrange(every)
    while end_after(steps, chance):
        steps += every
    assert steps > 150, "a life does not take that many steps any more"
