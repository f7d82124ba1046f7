"""One cluster at work: megabytes a second with acks=all, delays at 500 messages a second, memory, rest, and a cold
start."""

import multiprocessing
import struct
import time
from collections.abc import Callable
from multiprocessing.connection import Connection as Pipe

from confluent_kafka import Consumer, Producer, TopicPartition

from bench import frames
from bench.cluster.stage import ClusterStage, make_topic
from bench.rdkafka import BIG_BATCHES, FLUSH_SECONDS_MAX, QUEUE
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.produce import ProduceResponse
from tests.peers.cluster import Cluster
from tests.peers.connection import Connection, Disconnected

PARTITIONS = 3
RECORD_BYTES = 1_000
AT_ONCE = 1_000
PER_SECOND = 500
SIZE_BYTES = 100
WARM_SECONDS = 5
SETTLE_SECONDS = 5


def work(stage: ClusterStage) -> dict[str, float]:
    """With `ottla.flush=os`, which is Kafka's way with the disk."""
    return _work(stage, "os", "cluster")


def durable(stage: ClusterStage) -> dict[str, float]:
    """With Ottla's own default: what is acknowledged is on the leader's disk."""
    return _work(stage, "ack", "cluster_ack")


def _work(stage: ClusterStage, flush: str, prefix: str) -> dict[str, float]:
    sizes = stage.sizes
    figures: dict[str, float] = {}
    with stage.cluster(flush=flush) as cluster:
        make_topic(cluster, "warm", PARTITIONS)
        make_topic(cluster, "work", PARTITIONS)
        make_topic(cluster, "latency")
        _produce(cluster, "warm", sizes.warm_megabytes)
        cpu = _cpu_seconds(cluster)
        seconds = _produce(cluster, "work", sizes.megabytes)
        figures["mb_per_s"] = sizes.megabytes / seconds
        figures["cpu_ms_per_mb"] = (_cpu_seconds(cluster) - cpu) / sizes.megabytes * 1e3
        figures |= _latency(cluster, sizes.latency_seconds)
        _consume(cluster, "work", sizes.megabytes)
        figures["resident_mb"] = sum(node.resident_bytes() for node in cluster.nodes.values()) / 1e6
        time.sleep(SETTLE_SECONDS)
        cpu = _cpu_seconds(cluster)
        time.sleep(sizes.idle_seconds)
        figures["idle_percent"] = (_cpu_seconds(cluster) - cpu) / sizes.idle_seconds * 100
        figures["first_ack_s"] = _cold_start(cluster, "latency")
    return {f"{prefix}.{name}": figure for name, figure in figures.items()}


def _cpu_seconds(cluster: Cluster) -> float:
    return sum(node.cpu_seconds() for node in cluster.nodes.values())


def _produce(cluster: Cluster, topic: str, megabytes: int) -> float:
    """Produce to all partitions in turn, and return how long it took until the last was acknowledged."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, **QUEUE, **BIG_BATCHES})
    content = frames.value(RECORD_BYTES)
    for partition in range(PARTITIONS):  # finds the leaders and opens the connections
        producer.produce(topic, content, partition=partition)
    assert producer.flush(FLUSH_SECONDS_MAX) == 0
    began = time.perf_counter()
    batch = [{"value": content} for _ in range(AT_ONCE)]
    for number in range(megabytes * 1_000_000 // (RECORD_BYTES * AT_ONCE)):
        left = AT_ONCE
        while left:
            try:
                left -= producer.produce_batch(topic, batch[:left], partition=number % PARTITIONS)
            except BufferError:
                producer.poll(0.01)
    assert producer.flush(FLUSH_SECONDS_MAX) == 0
    return time.perf_counter() - began


def _consume(cluster: Cluster, topic: str, megabytes: int) -> None:
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": "work", "enable.auto.commit": False}
    )
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
        left = megabytes * 1_000_000 // RECORD_BYTES
        while left > 0:
            found = consumer.consume(10_000, timeout=20)
            assert found, f"{left} messages did not come"
            left -= len(found)
    finally:
        consumer.close()


def _latency(cluster: Cluster, seconds: int) -> dict[str, float]:
    """End to end between two processes, and until the acknowledgement."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    count = (WARM_SECONDS + seconds) * PER_SECOND
    reader = context.Process(target=_read, args=(cluster.bootstrap, count, theirs), daemon=True)
    reader.start()
    try:
        assert ours.recv() == "ready"
        acknowledged = _write(cluster.bootstrap, count)
        assert ours.poll(60), "the reader did not get every message"
        delays = ours.recv()
    finally:
        reader.join(10)
    skipped = WARM_SECONDS * PER_SECOND
    delays, acknowledged = sorted(delays[skipped:]), sorted(acknowledged[skipped:])
    return {
        "p50_ms": delays[len(delays) // 2] / 1e6,
        "p99_ms": delays[len(delays) * 99 // 100] / 1e6,
        "ack_p50_ms": acknowledged[len(acknowledged) // 2] / 1e6,
        "ack_p99_ms": acknowledged[len(acknowledged) * 99 // 100] / 1e6,
    }


def _write(bootstrap: str, count: int) -> list[int]:
    # With the client's own linger.ms: with 0 every record is a request, and Kafka, which takes the next request of a
    # connection when the last is answered, is kept waiting for its followers: that would measure a queue.
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    producer.list_topics("latency", timeout=10)
    padding = bytes(SIZE_BYTES - 8)
    delays: list[int] = []

    def delivered(sent_ns: int) -> Callable[[object, object], None]:
        def call(error: object, _: object) -> None:
            assert error is None, error
            delays.append(time.monotonic_ns() - sent_ns)

        return call

    began = time.monotonic()
    for number in range(count):
        while (wait := began + number / PER_SECOND - time.monotonic()) > 0:
            producer.poll(wait)  # returns as soon as something is acknowledged
        sent_ns = time.monotonic_ns()
        producer.produce(
            "latency", struct.pack(">q", sent_ns) + padding, partition=0, on_delivery=delivered(sent_ns)
        )
        producer.poll(0)
    assert producer.flush(30) == 0
    return delays


def _read(bootstrap: str, count: int, pipe: Pipe) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "latency", "enable.auto.commit": False})
    consumer.assign([TopicPartition("latency", 0, 0)])
    consumer.poll(0.5)  # nothing there yet: the fetch is waiting at the server when the first message comes
    pipe.send("ready")
    delays: list[int] = []
    while len(delays) < count:
        message = consumer.poll(30)
        assert message is not None, f"only {len(delays)} of {count} messages came"
        assert message.error() is None, message.error()
        delays.append(time.monotonic_ns() - struct.unpack_from(">q", message.value() or b"")[0])
    pipe.send(delays)
    consumer.close()


def _cold_start(cluster: Cluster, topic: str) -> float:
    """Stop all, start all at once, and return when the first record is acknowledged by all that are in sync."""
    cluster.stop()
    frame = frames.produce_frame(topic, 0, records=1, size_bytes=SIZE_BYTES, acks=-1)
    began = time.perf_counter()
    for node in cluster.nodes.values():
        node.start(wait=False)
    while time.perf_counter() - began < 120:
        for node in cluster.nodes.values():
            if _acknowledges(node.port, frame):
                return time.perf_counter() - began
        time.sleep(0.002)
    raise AssertionError("no acknowledgement within 120 s")


def _acknowledges(port: int, frame: bytes) -> bool:
    try:
        with Connection(port, seconds_max=10) as line:
            line.send_bytes(frame)
            answer = ProduceResponse.decode(line.receive_frame()[5:], frames.PRODUCE_VERSION)
            return bool(answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE)
    except (OSError, struct.error, Disconnected):
        return False
