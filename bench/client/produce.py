"""Producing from one process: Ottla's client beside aiokafka, kafka-python and, for scale, confluent-kafka.

    python -m bench.client.produce --size 100 --records 200000

Every client sends the same values to a topic of one partition on the same server, with its own defaults but for what
is told to all: acks=all, linger 5 ms, batches of 16 KB, no compression. A figure is records a second from the first
send to the last acknowledgement, and microseconds of CPU time of this process for each record. `--keys` gives each
record one of 1,000 keys. Clients take turns, and the median of the rounds is told.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.stage import Sizes, Stage

LINGER_MS = 5
BATCH_BYTES = 16_384
KEYS = [b"key-%d" % number for number in range(1000)]


def _key(number: int, keys: bool) -> bytes | None:
    return KEYS[number % 1000] if keys else None


async def ottla_send(bootstrap: str, topic: str, value: bytes, count: int, keys: bool) -> None:
    from ottla.client.producer import Producer

    async with Producer(bootstrap, linger_ms=LINGER_MS, batch_size=BATCH_BYTES) as producer:
        send = producer.send
        if keys:
            for number in range(count):
                await send(topic, value, KEYS[number % 1000])
        else:
            for _ in range(count):
                await send(topic, value)
        await producer.flush()
        assert producer.statistics().records_sent == count


async def ottla_nowait(bootstrap: str, topic: str, value: bytes, count: int, keys: bool) -> None:
    from ottla.client.errors import BufferFull
    from ottla.client.producer import Producer

    async with Producer(bootstrap, linger_ms=LINGER_MS, batch_size=BATCH_BYTES) as producer:
        await producer.partitions_for(topic)
        send = producer.send_nowait
        for start in range(0, count, 500):
            for number in range(start, min(start + 500, count)):
                try:
                    send(topic, value, _key(number, keys))
                except BufferFull:
                    await producer.send(topic, value, _key(number, keys))
            await asyncio.sleep(0)
        await producer.flush()
        assert producer.statistics().records_sent == count


async def aiokafka_send(bootstrap: str, topic: str, value: bytes, count: int, keys: bool) -> None:
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, acks="all", linger_ms=LINGER_MS, max_batch_size=BATCH_BYTES
    )
    await producer.start()
    try:
        for number in range(count):
            await producer.send(topic, value, _key(number, keys))
        await producer.flush()
    finally:
        await producer.stop()


async def kafka_python_send(bootstrap: str, topic: str, value: bytes, count: int, keys: bool) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(
        bootstrap_servers=bootstrap, acks="all", linger_ms=LINGER_MS, batch_size=BATCH_BYTES
    )
    for number in range(count):
        producer.send(topic, value, _key(number, keys))
    producer.flush()
    producer.close()


async def confluent_send(bootstrap: str, topic: str, value: bytes, count: int, keys: bool) -> None:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "linger.ms": LINGER_MS,
            "batch.size": BATCH_BYTES,
            "log_level": 0,
        }
    )
    for number in range(count):
        while True:
            try:
                producer.produce(topic, value, _key(number, keys))
                break
            except BufferError:
                producer.poll(0.01)
        if not number % 1000:
            producer.poll(0)
    assert producer.flush(60) == 0


CLIENTS: dict[str, Callable[[str, str, bytes, int, bool], Awaitable[None]]] = {
    "ottla": ottla_send,
    "ottla-nowait": ottla_nowait,
    "aiokafka": aiokafka_send,
    "kafka-python": kafka_python_send,
    "confluent": confluent_send,
}


def run(client: str, bootstrap: str, size: int, count: int, keys: bool, uvloop: bool) -> tuple[float, float]:
    """Records a second, and microseconds of CPU for each."""
    import uvloop as uv

    loop_factory = uv.new_event_loop if uvloop else None
    topic = f"{client}-{size}-{time.monotonic_ns()}"
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        # The topic, and whatever is made on first use.
        runner.run(CLIENTS[client](bootstrap, topic, b"w" * size, 1000, keys))  # type: ignore[arg-type]
        cpu, begin = time.process_time(), time.perf_counter()
        runner.run(CLIENTS[client](bootstrap, topic, b"x" * size, count, keys))  # type: ignore[arg-type]
        wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    return count / wall, cpu / count * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--size", type=int, action="append", help="bytes of a value; may be repeated")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--client", action="append", choices=CLIENTS)
    parser.add_argument("--product", default="ottla", choices=("ottla", "kafka"))
    parser.add_argument("--bootstrap", help="a server that runs already")
    parser.add_argument("--keys", action="store_true")
    parser.add_argument("--uvloop", action="store_true", help="run asyncio clients on uvloop")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        if options.bootstrap:
            measure(options, options.bootstrap)
        else:
            with Stage(options.product, Sizes(), Path(place)).server() as server:
                measure(options, server.bootstrap)


def measure(options: argparse.Namespace, bootstrap: str) -> None:
    clients = options.client or list(CLIENTS)
    for size in options.size or [100, 1000]:
        found: dict[str, list[tuple[float, float]]] = {client: [] for client in clients}
        for _ in range(options.rounds):
            for client in clients:
                found[client].append(
                    run(client, bootstrap, size, options.records, options.keys, options.uvloop)
                )
        for client, figures in found.items():
            rate = statistics.median(each[0] for each in figures)
            cpu = statistics.median(each[1] for each in figures)
            print(f"{size:>6} B  {client:<14} {rate:>12,.0f} records/s  {cpu:>8.2f} µs CPU a record")


if __name__ == "__main__":
    main()
