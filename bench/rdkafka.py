"""Load from librdkafka, the client that the requirements name.

Only the server's CPU time counts, read from /proc; the client's own is what it is. Where librdkafka itself is
the limit on a small machine, `bench.raw` gives the second figure.
"""

import json
import time
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from bench import frames
from bench.raw import Load
from tests.peers.server import Server

FLUSH_SECONDS_MAX = 300.0
QUEUE: dict[str, Any] = {"queue.buffering.max.messages": 10_000_000, "queue.buffering.max.kbytes": 2_000_000}
ONE_A_REQUEST: dict[str, Any] = {
    "batch.num.messages": 1,
    "linger.ms": 0,
    "acks": 1,
    "max.in.flight.requests.per.connection": 1000,
}
BIG_BATCHES: dict[str, Any] = {
    "batch.num.messages": 10_000,
    "batch.size": 1_000_000,
    "linger.ms": 5,
    "acks": "all",
}


def produce(
    server: Server,
    topic: str,
    settings: dict[str, Any],
    *,
    messages: int,
    size_bytes: int,
    at_once: int = 10_000,
) -> Load:
    """Produce so many messages, and return when the last is acknowledged."""
    producer = Producer({"bootstrap.servers": server.bootstrap, **QUEUE, **settings})
    content = frames.value(size_bytes)
    producer.produce(topic, content, partition=0)  # finds the leader and opens the connection
    _flush(producer)
    cpu, began = server.cpu_seconds(), time.perf_counter()
    left = messages
    while left:
        count = min(left, at_once)
        try:
            left -= producer.produce_batch(topic, [{"value": content} for _ in range(count)], partition=0)
        except BufferError:
            producer.poll(0.01)
    _flush(producer)
    return Load(time.perf_counter() - began, server.cpu_seconds() - cpu)


def requests_for(
    server: Server, topic: str, settings: dict[str, Any], *, messages: int, size_bytes: int
) -> int:
    """How many Produce requests librdkafka makes of so many messages, by its own count."""
    counts: list[int] = []

    def statistics(text: str) -> None:
        brokers = json.loads(text)["brokers"].values()
        counts.append(sum(broker["req"].get("Produce", 0) for broker in brokers))

    told = {"statistics.interval.ms": 100, "stats_cb": statistics}
    producer = Producer({"bootstrap.servers": server.bootstrap, **QUEUE, **settings, **told})
    for _ in range(messages):
        producer.produce(topic, frames.value(size_bytes), partition=0)
    _flush(producer)
    told_at_flush, deadline = len(counts), time.monotonic() + 10
    while len(counts) < told_at_flush + 2 and time.monotonic() < deadline:
        producer.poll(0.1)
    return counts[-1]


def consume(server: Server, topic: str, *, messages: int) -> Load:
    """Read so many messages from the start of the topic."""
    settings = {"bootstrap.servers": server.bootstrap, "group.id": "bench", "enable.auto.commit": False}
    consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        seen, cpu, began = 0, server.cpu_seconds(), time.perf_counter()
        while seen < messages:
            batch = consumer.consume(10_000, timeout=10)
            assert batch, f"only {seen} of {messages} messages came"
            seen += len(batch)
        return Load(time.perf_counter() - began, server.cpu_seconds() - cpu)
    finally:
        consumer.close()


def _flush(producer: Producer) -> None:
    unsent = producer.flush(FLUSH_SECONDS_MAX)
    assert unsent == 0, f"{unsent} messages were not acknowledged in time"
