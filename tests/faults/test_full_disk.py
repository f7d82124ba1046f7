"""A disk that is full: writers get a retriable error, everything else goes on, and so do writes once there is room.

The first tests use a real, small file system. The others fill a disk in memory at every single step of some work.
"""

import errno
import itertools
import random
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.wire.errors import ErrorCode
from tests.faults.by_hand import Hand, batch, hand, headers
from tests.faults.forgetful_disk import ForgetfulDisk
from tests.faults.node_thread import NodeThread
from tests.faults.seeds import count
from tests.faults.small_disk import free_bytes, small_file_system
from tests.faults.sound import check_batches
from tests.peers.ottla import OttlaServer
from tests.peers.server import ServerFailed

MIB = 1 << 20
SIZE_BYTES = 12 * MIB
BALLAST_BYTES = 6 * MIB
FULL = ErrorCode.KAFKA_STORAGE_ERROR


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    with small_file_system(tmp_path / "small", SIZE_BYTES) as where:
        (where / "ballast").write_bytes(bytes(BALLAST_BYTES))
        yield where


class Filler:
    """Writes batches of random sizes and remembers what was acknowledged."""

    def __init__(self, client: Hand, chance: random.Random, topics: list[str]) -> None:
        self.client = client
        self.acknowledged: dict[str, list[tuple[int, bytes]]] = {topic: [] for topic in topics}
        self._chance = chance
        self._numbers = itertools.count()

    def write_until_refused(self, *, largest: int) -> ErrorCode:
        """Write to the topics in turn until a batch is refused."""
        for topic in itertools.cycle(self.acknowledged):
            value = b"%d " % next(self._numbers) + self._chance.randbytes(self._chance.randrange(largest))
            code, offset = self.client.produce(topic, batch(value))
            if code is not ErrorCode.NONE:
                return code
            self.acknowledged[topic].append((offset, value))
        raise AssertionError("there are no topics")

    def write(self, count: int) -> None:
        """Write so many batches, all of which must be taken."""
        for topic, _ in zip(itertools.cycle(self.acknowledged), range(count), strict=False):
            value = b"%d " % next(self._numbers)
            code, offset = self.client.produce(topic, batch(value))
            assert code is ErrorCode.NONE, code
            self.acknowledged[topic].append((offset, value))

    def check(self, client: Hand) -> None:
        """Everything acknowledged is there, and nothing else."""
        for topic, told in self.acknowledged.items():
            data = client.read_all(topic)
            position = 0
            found = []
            for header in headers(data):
                size = header[1] + 12
                found.append((header[0], data[position : position + size]))
                position += size
            assert [offset for offset, _ in found] == [offset for offset, _ in told], topic
            for (_, content), (_, value) in zip(found, told, strict=True):
                assert value in content, topic


@pytest.mark.parametrize(("flush", "metadata"), [("ack", "on the full disk"), ("os", "elsewhere")])
def test_a_full_disk_is_survived(full_disk: Path, tmp_path: Path, metadata: str, flush: str) -> None:
    settings = {
        "ottla.flush": flush,
        "log.flush.offset.checkpoint.interval.ms": "100",
        "replica.high.watermark.checkpoint.interval.ms": "100",
        "log.retention.check.interval.ms": "500",
    }
    if metadata == "elsewhere":
        settings["metadata.log.dir"] = str(tmp_path / "metadata")
    server = OttlaServer(tmp_path / "server", settings)
    server.log_dir = full_disk / "data"
    topics = [f"fill-{n}" for n in range(3)]
    with server:
        with hand(server.port) as client:
            for topic in topics:
                assert client.create_topic(topic, segment_bytes=MIB) is ErrorCode.NONE
            filler = Filler(client, random.Random(5), topics)
            assert filler.write_until_refused(largest=200_000) is FULL
            # Down to the last block: small batches find the room that large ones did not.
            assert filler.write_until_refused(largest=300) is FULL
            for topic in topics:
                assert client.produce(topic, batch(bytes(9000)))[0] is FULL
            filler.check(client)
            assert {topic.name for topic in client.metadata().topics} == set(topics)
            # Where the metadata log has no room either, topics are refused; where it has, they are made, and their
            # partitions refuse what is written to them.
            made, refused = make_topics(client)
            if metadata == "on the full disk":
                assert refused
            for topic in made:
                code, _ = client.produce(topic, batch(b"too early"))
                assert code in (FULL, ErrorCode.NONE), code

            (full_disk / "ballast").unlink()
            filler.write(30)
            filler.check(client)
            for topic in refused:
                assert client.create_topic(topic, 8) is ErrorCode.NONE
            for topic in [*made, *refused]:
                for partition in range(8):
                    assert client.produce(topic, batch(b"in time"), partition=partition)[0] is ErrorCode.NONE
            # Again, to the brim, and this time the server ends there.
            assert filler.write_until_refused(largest=100_000) is FULL
            assert filler.write_until_refused(largest=300) is FULL
            filler.check(client)
        server.kill()
    assert check_batches(server.log_dir) > 0
    assert free_bytes(full_disk) < 64 << 10
    with suppress(ServerFailed):
        # A start on a disk without any room may fail, but not in a way that makes it worse.
        server.start()
        server.kill()
    # A little room is enough.
    grow(full_disk, SIZE_BYTES + 2 * MIB)
    with server, hand(server.port) as client:
        filler.client = client
        filler.check(client)
        filler.write(10)
        filler.check(client)
    assert "Traceback" not in server.output_path.read_text(), server.last_words()


def make_topics(client: Hand) -> tuple[list[str], list[str]]:
    """Ask for topics until one is refused, or there are many; those that were made, and the one that was not."""
    made: list[str] = []
    for number in range(20):
        name = f"late-{number}-" + "x" * 200
        code = client.create_topic(name, 8)
        if code is not ErrorCode.NONE:
            assert code is FULL, code
            return made, [name]
        made.append(name)
    return made, []


def grow(where: Path, size_bytes: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size_bytes}", str(where)], check=True)


def test_a_producer_waits_for_room(full_disk: Path, tmp_path: Path) -> None:
    """A real, idempotent producer tries again until there is room, and loses and repeats nothing."""
    server = OttlaServer(tmp_path / "server")
    server.log_dir = full_disk / "data"
    with server:
        with hand(server.port) as client:
            assert client.create_topic("patient", segment_bytes=MIB) is ErrorCode.NONE
        producer = Producer(
            {
                "bootstrap.servers": server.bootstrap,
                "enable.idempotence": True,
                "log_level": 0,
                "linger.ms": 5,
            }
        )
        failures: list[object] = []
        chance = random.Random(9)
        sent = 1800  # of 5 KB each, which is more than there is room for
        for number in range(sent):
            producer.produce(
                "patient",
                b"%d " % number + chance.randbytes(5000),
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )
            producer.poll(0)
        left = producer.flush(2)
        assert left > 0, "the disk was not full"
        (full_disk / "ballast").unlink()
        assert producer.flush(30) == 0
        assert not failures
        with hand(server.port) as client:
            assert client.end_offset("patient") == sent


# What takes room. Everything else works on a full disk.
TAKES_ROOM = {"append", "create"}


class Brim:
    """A hook that lets a disk fill up after so many steps that take room, until it is emptied."""

    def __init__(self, steps: int) -> None:
        self.left = steps
        self.full = False
        self.met: list[str] = []

    def __call__(self, what: str, path: str) -> None:
        if what not in TAKES_ROOM:
            return
        self.left -= 1
        if self.left < 0 and not self.emptied:
            self.full = True
            self.met.append(f"{what} {path}")
            raise OSError(errno.ENOSPC, "No space left on device", path)

    emptied = False


@pytest.mark.parametrize(
    "every",
    [
        pytest.param(count("OTTLA_EVERY", 5), id="short"),
        pytest.param(1, id="soak", marks=pytest.mark.long),
    ],
)
def test_the_disk_fills_up_at_any_step(every: int) -> None:
    """Some work, with the disk filling up at its n-th step, for every n: all goes on once there is room."""
    steps = 0
    while fill_up_after(steps):
        steps += every
    assert steps > 50, "the work does not take that many steps any more"


def fill_up_after(steps: int) -> bool:
    """Do the work on a disk with so many steps of room; say whether that was too little."""
    disk = ForgetfulDisk()
    runner = NodeThread(
        disk,
        {
            "log.flush.offset.checkpoint.interval.ms": "5",
            "replica.high.watermark.checkpoint.interval.ms": "5",
            "log.retention.check.interval.ms": "5",
            "metadata.log.max.record.bytes.between.snapshots": "600",
        },
    ).format()
    runner.start()
    brim = Brim(steps)
    disk.before = brim
    told: list[tuple[int, bytes]] = []
    try:
        with hand(runner.port, seconds_max=5) as client:
            made: set[tuple[str, ErrorCode]] = set()
            for number in range(4):
                work(client, f"topic-{number}", made, told, number)
            met = f"full at step {steps}: {brim.met[:1]}"
            assert all(code in (ErrorCode.NONE, FULL) for code in client_codes(made)), (met, made)
            brim.emptied = True
            for number in range(4):
                name = f"topic-{number}"
                code = client.create_topic(name, 2, segment_bytes=MIB)
                assert code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS), (met, code)
                for partition in range(2):
                    code, _ = client.produce(name, batch(b"after"), partition=partition)
                    assert code is ErrorCode.NONE, (met, name, partition, code)
            check_told(client, told, met)
        assert not runner.errors, (met, runner.errors)
        assert not runner.gave_up, (met, runner.gave_up)
        runner.stop()
        disk.before = None
        with runner, hand(runner.port, seconds_max=5) as client:
            check_told(client, told, met)
    finally:
        runner.abandon()
    return brim.full


def work(
    client: Hand, name: str, made: set[tuple[str, ErrorCode]], told: list[tuple[int, bytes]], number: int
) -> None:
    """Make a topic, fill more than a segment of it, and delete the one before."""
    code = client.create_topic(name, 2, segment_bytes=MIB)
    made.add((name, code))
    if code is not ErrorCode.NONE:
        return
    for turn in range(5):
        value = b"%s %d " % (name.encode(), turn) + bytes(300_000)
        code, offset = client.produce(name, batch(value))
        made.add((name, code))
        if code is ErrorCode.NONE:
            told.append((offset, value))


def client_codes(made: set[tuple[str, ErrorCode]]) -> set[ErrorCode]:
    return {code for _, code in made}


def check_told(client: Hand, told: list[tuple[int, bytes]], met: str) -> None:
    content = {f"topic-{number}": client.read_all(f"topic-{number}") for number in range(4)}
    for offset, value in told:
        name = value.split(b" ", 1)[0].decode()
        assert value in content[name], (met, name, offset)
