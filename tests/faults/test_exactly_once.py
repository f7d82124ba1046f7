"""Copying exactly once while broker and clients are killed: nothing lost, nothing twice, order kept.

Two copiers (see `copying`) share a group over several partitions; brokers and copiers are killed with -9 whenever
the copy has come as far as chance says. In the end a read-committed reader must find in each partition of the target
every record of the source, transformed, once, in the source's order.
"""

import contextlib
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import (
    Consumer,
    KafkaError,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ottla.wire.errors import ErrorCode
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from tests.faults import copying
from tests.faults.delaying_proxy import DelayingProxy
from tests.faults.seeds import count, seeded
from tests.faults.sound import check_batches
from tests.peers.connection import Connection, Disconnected
from tests.peers.jars import CHECKOUT
from tests.peers.ottla import OttlaServer
from tests.peers.server import HOST, free_ports

PARTITIONS = 4
COPIERS = 2
STILL_SECONDS_MAX = 30.0
SETTINGS = {"group.min.session.timeout.ms": "500", "offsets.topic.num.partitions": "5"}


@dataclass(frozen=True)
class Size:
    """How much is copied, and how often who is killed."""

    records: int
    broker_kills: int
    client_kills: int
    batch_max: int


SHORT = Size(
    count("OTTLA_RECORDS", 20_000), count("OTTLA_BROKER_KILLS", 2), count("OTTLA_CLIENT_KILLS", 3), 100
)
LONG = Size(
    count("OTTLA_RECORDS", 1_000_000), count("OTTLA_BROKER_KILLS", 10), count("OTTLA_CLIENT_KILLS", 20), 1000
)
SIZES = [
    pytest.param(SHORT, id="short"),
    pytest.param(LONG, id="long", marks=[pytest.mark.long, pytest.mark.timeout(3600)]),
]


# librdkafka speaks transactions v1, our own client v2.
COPIERS_BY_NAME = {"librdkafka": "tests.faults.copying", "ottla": "tests.faults.copying_own"}


@pytest.mark.parametrize("client", COPIERS_BY_NAME)
@pytest.mark.parametrize("size", SIZES)
def test_a_copy_under_kills_is_exact(size: Size, client: str, tmp_path: Path) -> None:
    chance = _seeded(size)
    server = OttlaServer(tmp_path, SETTINGS).start()
    _copy_under_kills(server, server.bootstrap, size, client, chance, tmp_path)


@pytest.mark.parametrize("client", COPIERS_BY_NAME)
@pytest.mark.parametrize("size", SIZES)
def test_a_copy_is_exact_when_endtxn_comes_late_and_twice(size: Size, client: str, tmp_path: Path) -> None:
    chance = _seeded(size)
    [port] = free_ports(1)
    server = OttlaServer(tmp_path, SETTINGS | {"advertised.listeners": f"PLAINTEXT://{HOST}:{port}"}).start()
    with DelayingProxy(port, server.port, random.Random(chance.random())) as proxy:
        _copy_under_kills(server, f"{HOST}:{port}", size, client, chance, tmp_path)
    print(f"EndTxn: {proxy.delayed} delayed, {proxy.repeated} repeated, versions {dict(proxy.versions)}")
    assert proxy.delayed > 5 and proxy.repeated > 5


def _seeded(size: Size) -> random.Random:
    return seeded(
        __file__,
        OTTLA_RECORDS=size.records,
        OTTLA_BROKER_KILLS=size.broker_kills,
        OTTLA_CLIENT_KILLS=size.client_kills,
    )


def _copy_under_kills(
    server: OttlaServer, bootstrap: str, size: Size, client: str, chance: random.Random, directory: Path
) -> None:
    try:
        written = _fill(bootstrap, size.records, chance)
        with _copiers(bootstrap, size, client, chance, directory) as copiers:
            _kill_meanwhile(server, copiers, Progress(server.port, written), size, chance)
        copied = _read(bootstrap, "read_committed")
        for partition, count_written in enumerate(written):
            _check(partition, count_written, copied[partition])
        tried = sum(map(len, _read(bootstrap, "read_uncommitted").values()))
    finally:
        server.stop()
    check_batches(server.log_dir)
    output = server.output_path.read_text()
    assert "Traceback" not in output, output[-4000:]
    restarts = sum(each.ended_by_itself for each in copiers)
    print(f"{size.records} copied, {tried - size.records} more were tried, {restarts} copiers gave up")


def _fill(bootstrap: str, records: int, chance: random.Random) -> list[int]:
    """Write the source, and return how many records each partition has."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    topics = [NewTopic(name, PARTITIONS, 1) for name in ("source", "target")]
    for future in admin.create_topics(topics).values():
        future.result(20)
    producer = Producer(
        {"bootstrap.servers": bootstrap, "log_level": 0, "linger.ms": 5, "enable.idempotence": True}
    )
    written = [0] * PARTITIONS
    for _ in range(records):
        partition = chance.randrange(PARTITIONS)
        value = b"%d %d" % (partition, written[partition])
        while True:
            try:
                producer.produce("source", value, partition=partition)
                break
            except BufferError:
                producer.poll(0.05)
        written[partition] += 1
    assert producer.flush(60) == 0
    return written


class CopierProcess:
    """A copier that is started again, whatever ended it."""

    def __init__(self, name: str, words: list[str], directory: Path) -> None:
        self._command = [sys.executable, "-m", *words]
        self._output_path = directory / f"{name}.out"
        self.ended_by_itself = 0
        self._start()

    def _start(self) -> None:
        with self._output_path.open("ab") as output:
            self._process = subprocess.Popen(
                self._command, cwd=CHECKOUT, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def kill_and_start(self) -> None:
        self.kill()
        self._start()

    def look_after(self) -> None:
        """Start it again if it gave up, which only an error that ends a producer allows."""
        code = self._process.poll()
        if code is None:
            return
        assert code == copying.BEYOND_REPAIR, f"ended with {code}:\n{self._output_path.read_text()[-4000:]}"
        self.ended_by_itself += 1
        self._start()


@contextlib.contextmanager
def _copiers(
    bootstrap: str, size: Size, client: str, chance: random.Random, directory: Path
) -> Iterator[list[CopierProcess]]:
    started: list[CopierProcess] = []
    try:
        for number in range(COPIERS):
            name, seed = f"copier-{number}", chance.randrange(1 << 32)
            words = [bootstrap, "source", "target", name, str(seed), str(size.batch_max)]
            started.append(CopierProcess(name, [COPIERS_BY_NAME[client], *words], directory))
        yield started
    finally:
        for each in started:
            each.kill()


class Progress:
    """How far the group's committed offsets are, which must never go back."""

    def __init__(self, port: int, written: list[int]) -> None:
        self._port = port
        self.written = written
        self.goal = sum(written)
        self._committed = [0] * len(written)
        self._moved = time.monotonic()

    def look(self) -> int:
        """Records whose copy is committed; the last known while the broker is away."""
        found = self._ask()
        for partition, offset in found.items():
            before = self._committed[partition]
            assert offset >= before, f"partition {partition} went back from {before} to {offset}"
            assert offset <= self.written[partition], f"partition {partition} is at {offset}, beyond the end"
            if offset > before:
                self._committed[partition] = offset
                self._moved = time.monotonic()
        still = time.monotonic() - self._moved
        assert still < STILL_SECONDS_MAX, f"nothing was committed for {still:.0f} s at {self._committed}"
        return sum(self._committed)

    def _ask(self) -> dict[int, int]:
        """By hand, and directly: a client that waits and repeats would only add riddles of its own."""
        kind = OffsetFetchRequest.OffsetFetchRequestGroup
        topic = kind.OffsetFetchRequestTopics(name="source", partition_indexes=list(range(len(self.written))))
        request = OffsetFetchRequest(groups=[kind(group_id=copying.GROUP, topics=[topic])])
        try:
            with Connection(self._port, seconds_max=5) as line:
                answer = line.ask(request, OffsetFetchResponse, 8).groups[0]
        except (OSError, Disconnected):
            return {}
        if answer.error_code != ErrorCode.NONE:
            return {}
        return {
            each.partition_index: max(each.committed_offset, 0)
            for each in answer.topics[0].partitions
            if each.error_code == ErrorCode.NONE
        }


def _kill_meanwhile(
    server: OttlaServer, copiers: list[CopierProcess], progress: Progress, size: Size, chance: random.Random
) -> None:
    victims = ["broker"] * size.broker_kills + ["copier"] * size.client_kills
    chance.shuffle(victims)
    marks = sorted(chance.randrange(progress.goal * 9 // 10) for _ in victims)
    for mark, victim in zip(marks, victims, strict=True):
        _wait_for(mark, progress, copiers)
        time.sleep(chance.uniform(0, 0.1))
        print(f"{time.strftime('%X')} at {mark} kill a {victim}")
        if victim == "copier":
            chance.choice(copiers).kill_and_start()
        else:
            server.kill()
            server.start()
    _wait_for(progress.goal, progress, copiers)


def _wait_for(mark: int, progress: Progress, copiers: list[CopierProcess]) -> None:
    while progress.look() < mark:
        for each in copiers:
            each.look_after()
        time.sleep(0.02)


def _read(bootstrap: str, isolation: str, seconds_max: float = 120.0) -> dict[int, list[bytes]]:
    """The values of the target, by partition, up to its end."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "judge",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "check.crcs": True,
            "log_level": 0,
        }
    )
    found: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
    open_partitions = set(found)
    try:
        consumer.assign([TopicPartition("target", partition, 0) for partition in found])
        deadline = time.monotonic() + seconds_max
        while open_partitions:
            assert time.monotonic() < deadline, f"{open_partitions} cannot be read to the end"
            for message in consumer.consume(5000, timeout=0.2):
                partition, error = message.partition(), message.error()
                assert partition is not None
                if error is None:
                    found[partition].append(message.value() or b"")
                else:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    open_partitions.discard(partition)
        return found
    finally:
        consumer.close()


def _check(partition: int, count_written: int, found: list[bytes]) -> None:
    expected = [copying.transformed(b"%d %d" % (partition, number)) for number in range(count_written)]
    if found == expected:
        return
    lost, twice = set(expected) - set(found), len(found) - len(set(found))
    for number, (value, wanted) in enumerate(zip(found, expected, strict=False)):
        if value != wanted:
            raise AssertionError(
                f"partition {partition}: {len(lost)} lost, {twice} twice; first {value!r} in place of {wanted!r} "
                f"(record {number} of {count_written})"
            )
    raise AssertionError(f"partition {partition}: {len(lost)} lost, {twice} twice, at the end")
