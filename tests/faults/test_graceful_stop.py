"""SIGTERM under load: the end comes within two seconds, cleanly, and the next start reads no data."""

import json
import random
import signal
import threading
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.wire.errors import ErrorCode
from ottla.wire.messages.fetch import FetchRequest
from tests.faults.by_hand import batch, hand
from tests.faults.forgetful_disk import ForgetfulDisk
from tests.faults.load import Load
from tests.faults.node_thread import NodeThread
from tests.faults.sound import check_batches
from tests.peers.deadline import eventually
from tests.peers.ottla import OttlaServer

STOP_SECONDS_MAX = 2.0
MIB = 1 << 20


def end(server: OttlaServer, how: signal.Signals = signal.SIGTERM) -> tuple[int, float]:
    """Send a signal, and return exit code and how long it took."""
    process = server.process
    assert process is not None
    began = time.monotonic()
    process.send_signal(how)
    code = process.wait(30)
    took = time.monotonic() - began
    server.stop()  # which only forgets it now
    return code, took


@pytest.mark.parametrize("flush", ["ack", "os"])
def test_sigterm_under_load(tmp_path: Path, flush: str) -> None:
    server = OttlaServer(tmp_path, {"ottla.flush": flush}).start()
    load = Load(server.bootstrap, random.Random(1), topic_settings={"segment.bytes": str(MIB)})
    load.start()
    try:
        for _ in range(2):
            load.wait_for(300)
            code, took = end(server)
            assert code == 0, server.last_words()
            assert took < STOP_SECONDS_MAX, f"the stop took {took:.1f} s"
            marker = json.loads((server.log_dir / ".kafka_cleanshutdown").read_text())
            assert marker["version"] == 0 and marker["brokerEpoch"] >= 0
            assert check_batches(server.log_dir) > 0
            server.start()
            assert not (server.log_dir / ".kafka_cleanshutdown").exists()
        load.stop()
        load.check()
    finally:
        server.stop()
    output = server.output_path.read_text()
    assert "not a clean one" not in output.split("\n", 12)[-1], output[-3000:]
    assert "Traceback" not in output, output[-3000:]


def test_stop_while_clients_wait_and_stall(tmp_path: Path) -> None:
    """Neither a parked fetch, nor a half-sent request, nor a peer that does not read holds the stop up."""
    server = OttlaServer(tmp_path).start()
    with (
        hand(server.port) as client,
        hand(server.port) as parked,
        hand(server.port) as half,
        hand(server.port) as deaf,
    ):
        assert client.create_topic("t") is ErrorCode.NONE
        for _ in range(8):
            assert client.produce("t", batch(bytes(900_000)))[0] is ErrorCode.NONE
        part = FetchRequest.FetchTopic.FetchPartition(partition=0, fetch_offset=8, partition_max_bytes=MIB)
        topics = [FetchRequest.FetchTopic(topic="t", partitions=[part])]
        parked.connection.send(FetchRequest(max_wait_ms=600_000, min_bytes=1, topics=topics), 12)
        half.connection.send_bytes(b"\0\1\0\0half a request")
        part = FetchRequest.FetchTopic.FetchPartition(
            partition=0, fetch_offset=0, partition_max_bytes=8 * MIB
        )
        topics = [FetchRequest.FetchTopic(topic="t", partitions=[part])]
        for _ in range(10):
            deaf.connection.send(FetchRequest(max_wait_ms=0, min_bytes=1, topics=topics), 12)
        client.end_offset("t")
        code, took = end(server)
    assert code == 0, server.last_words()
    assert took < STOP_SECONDS_MAX, f"the stop took {took:.1f} s"
    assert (server.log_dir / ".kafka_cleanshutdown").exists()


def test_interrupt_and_impatience(tmp_path: Path) -> None:
    """SIGINT is as good as SIGTERM, and a second signal does no harm."""
    server = OttlaServer(tmp_path).start()
    code, took = end(server, signal.SIGINT)
    assert (code, took < STOP_SECONDS_MAX) == (0, True)
    server.start()
    assert server.process is not None
    server.process.send_signal(signal.SIGTERM)
    code, took = end(server)
    assert (code, took < STOP_SECONDS_MAX) == (0, True)
    assert (server.log_dir / ".kafka_cleanshutdown").exists()


def test_sigterm_during_the_start(tmp_path: Path) -> None:
    """At any moment of a start, a signal ends it."""
    server = OttlaServer(tmp_path).start()
    with hand(server.port) as client:
        assert client.create_topic("t", 20) is ErrorCode.NONE
    server.kill()
    chance = random.Random(3)
    for _ in range(6):
        server.start(wait=False)
        time.sleep(chance.uniform(0.1, 0.7))
        code, took = end(server)
        # Before Python has come to the handler, the signal ends the process by itself.
        assert code in (0, 1, -signal.SIGTERM), server.last_words()
        assert took < STOP_SECONDS_MAX, f"the stop took {took:.1f} s"
        assert "Traceback" not in server.output_path.read_text(), server.last_words()
    with server, hand(server.port) as client:
        assert client.produce("t", batch(b"v"))[0] is ErrorCode.NONE


def bytes_read(pid: int) -> int:
    """What a process has read so far, from wherever."""
    for line in Path(f"/proc/{pid}/io").read_text().splitlines():
        if line.startswith("rchar:"):
            return int(line.split()[1])
    raise AssertionError("the kernel does not count")


def test_a_start_after_a_clean_stop_reads_no_data(tmp_path: Path) -> None:
    """A start on 60 MB reads as much as one on an empty directory, but for a few kilobytes a partition."""
    server = OttlaServer(tmp_path).start()
    end(server)
    server.start()
    empty = bytes_read(server.pid)
    with hand(server.port) as client:
        assert client.create_topic("t", 4, segment_bytes=16 * MIB) is ErrorCode.NONE
    producer = Producer({"bootstrap.servers": server.bootstrap, "enable.idempotence": True, "log_level": 0})
    value = random.Random(2).randbytes(10_000)
    for number in range(6000):
        producer.produce("t", value, partition=number % 4)
        producer.poll(0)
        if number % 1000 == 0:
            producer.flush(20)
    assert producer.flush(20) == 0
    assert end(server)[0] == 0
    size = sum(path.stat().st_size for path in server.log_dir.glob("t-*/*.log"))
    assert size > 60_000_000
    with server:
        # Whatever is opened behind the start's back is opened before the first answer about it.
        with hand(server.port) as client:
            ends = [client.end_offset("t", partition=partition) for partition in range(4)]
        read = bytes_read(server.pid) - empty
        assert sum(ends) == 6000
        assert read < 400_000, f"{read} bytes more than on an empty directory, of {size} bytes of data"


def test_what_was_appended_is_answered_before_the_end() -> None:
    """Requests whose batches stand in the log get their answers: an idempotent producer that sends them again after
    the next start is known by its last batch alone, and would have to give up."""
    disk = ForgetfulDisk()
    runner = NodeThread(disk, {"ottla.flush": "ack"}).format().start()
    slow = threading.Event()
    syncing = threading.Event()

    def hold(what: str, path: str) -> None:
        if what == "sync" and "/t-0/" in path:
            syncing.set()
            slow.wait(5)

    try:
        with hand(runner.port) as client:
            assert client.create_topic("t") is ErrorCode.NONE
            producer_id, epoch = client.init_producer()
            batches = [batch(b"v", producer_id=producer_id, epoch=epoch, sequence=n) for n in range(5)]
            disk.before = hold
            for each in batches:
                client.send_produce("t", each)
            assert syncing.wait(5)
            eventually(lambda: runner.call(lambda node: node.table.by_name("t", 0).log.end_offset) == 5)
            stopping = threading.Thread(target=runner.stop)
            stopping.start()
            threading.Timer(0.1, slow.set).start()
            answers = [client.receive_produce() for _ in batches]
            stopping.join(10)
            assert answers == [(ErrorCode.NONE, n) for n in range(5)]
    finally:
        slow.set()
        runner.abandon()


def test_whoever_can_connect_is_served(tmp_path: Path) -> None:
    """The first thing a client asks for is done, after the first start and after every other."""
    server = OttlaServer(tmp_path)
    for number in range(6):
        server.start()
        try:
            with hand(server.port) as client:
                assert [each.node_id for each in client.metadata().brokers] == [1]
                assert client.create_topic(f"t-{number}") is ErrorCode.NONE
                assert client.produce(f"t-{number}", batch(b"v")) == (ErrorCode.NONE, 0)
        finally:
            server.stop() if number % 2 else server.kill()
