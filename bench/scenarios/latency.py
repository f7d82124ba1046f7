"""End to end: from `produce` in one process to the message in another's hands, at 1,000 messages a second.

The clock is the system's monotonic one, which both processes share.
"""

import multiprocessing
import struct
import time
from multiprocessing.connection import Connection as Pipe

from confluent_kafka import Consumer, Producer, TopicPartition

from bench import raw
from bench.scenarios.warm import warm
from bench.stage import Stage

PER_SECOND = 1_000
SIZE_BYTES = 100
WARM_SECONDS = 5


def latency(stage: Stage) -> dict[str, float]:
    seconds = stage.sizes.latency_seconds
    with stage.server() as server:
        warm(server, stage.sizes)
        raw.make_topic(server, "latency")
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        count = (WARM_SECONDS + seconds) * PER_SECOND
        reader = context.Process(target=_read, args=(server.bootstrap, count, theirs), daemon=True)
        reader.start()
        try:
            assert ours.recv() == "ready"
            cpu = server.cpu_seconds()
            _write(server.bootstrap, count)
            assert ours.poll(30), "the reader did not get every message"
            delays = ours.recv()[WARM_SECONDS * PER_SECOND :]
            busy = (server.cpu_seconds() - cpu) / (WARM_SECONDS + seconds)
        finally:
            reader.join(10)
    delays.sort()
    return {
        "latency.p50_ms": delays[len(delays) // 2] / 1e6,
        "latency.p99_ms": delays[len(delays) * 99 // 100] / 1e6,
        "latency.cpu_percent": busy * 100,
    }


def _write(bootstrap: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": 1})
    producer.list_topics("latency", timeout=10)
    padding = bytes(SIZE_BYTES - 8)
    began = time.monotonic()
    for number in range(count):
        wait = began + number / PER_SECOND - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        producer.produce("latency", struct.pack(">q", time.monotonic_ns()) + padding, partition=0)
        producer.poll(0)
    assert producer.flush(30) == 0


def _read(bootstrap: str, count: int, pipe: Pipe) -> None:
    settings = {"bootstrap.servers": bootstrap, "group.id": "latency", "enable.auto.commit": False}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition("latency", 0, 0)])
    consumer.poll(0.5)  # nothing there yet: the fetch is waiting at the server when the first message comes
    pipe.send("ready")
    delays: list[int] = []
    while len(delays) < count:
        message = consumer.poll(20)
        assert message is not None, f"only {len(delays)} of {count} messages came"
        assert message.error() is None, message.error()
        delays.append(time.monotonic_ns() - struct.unpack_from(">q", message.value() or b"")[0])
    pipe.send(delays)
    consumer.close()
