"""One client at one task, in a process of its own: prints its figures as one line of JSON.

python -m bench.client.task produce|consume|arrow|reply CLIENT BOOTSTRAP TOPIC SIZE COUNT
"""

import asyncio
import json
import re
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvloop


async def ottla_reply(bootstrap: str, topic: str, value: bytes, count: int) -> list[float]:
    from ottla.client import Producer

    async with Producer(bootstrap, linger_ms=0) as producer:
        return await _timed(lambda: producer.send_and_wait(topic, value), count)


async def aiokafka_reply(bootstrap: str, topic: str, value: bytes, count: int) -> list[float]:
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=0)
    await producer.start()
    try:
        return await _timed(lambda: producer.send_and_wait(topic, value), count)
    finally:
        await producer.stop()


async def kafka_python_reply(bootstrap: str, topic: str, value: bytes, count: int) -> list[float]:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=0)

    async def once() -> None:
        producer.send(topic, value).get(30)

    try:
        return await _timed(once, count)
    finally:
        producer.close()


async def confluent_reply(bootstrap: str, topic: str, value: bytes, count: int) -> list[float]:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0, "log_level": 0})

    async def once() -> None:
        producer.produce(topic, value)
        assert producer.flush(30) == 0

    return await _timed(once, count)


async def _timed(once: Callable[[], Awaitable[object]], count: int) -> list[float]:
    for _ in range(200):
        await once()
    taken = []
    for _ in range(count):
        began = time.perf_counter()
        await once()
        taken.append(time.perf_counter() - began)
    return taken


REPLIES = {
    "ottla": ottla_reply,
    "aiokafka": aiokafka_reply,
    "kafka-python": kafka_python_reply,
    "confluent": confluent_reply,
}


def _memory_mb() -> float:
    """The most this program has had in memory; unlike the maximum of getrusage, it does not begin with its parent's."""
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def main() -> None:
    task, client, bootstrap, topic = sys.argv[1:5]
    size, count = map(int, sys.argv[5:])
    if task == "produce":
        from bench.client import produce

        rate, cpu = produce.run(client, bootstrap, size, count, keys=False, uvloop=True)
        figures = {"per_s": rate, "cpu_us": cpu}
    elif task == "consume":
        from bench.client import consume

        rate, cpu = consume.run(client, bootstrap, topic, count, uvloop=True)
        figures = {"per_s": rate, "cpu_us": cpu}
    elif task == "arrow":
        from bench.client import arrow

        rate, cpu = arrow.run("poll_arrow" if client == "ottla" else client, bootstrap, topic, count)
        figures = {"per_s": rate, "cpu_us": cpu}
    else:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            taken = runner.run(REPLIES[client](bootstrap, topic, bytes(size), count))
        figures = {
            "p50_us": statistics.median(taken) * 1e6,
            "p99_us": statistics.quantiles(taken, n=100)[98] * 1e6,
        }
    figures["memory_mb"] = _memory_mb()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
