"""Consuming in one process: Ottla's client beside aiokafka, kafka-python and, for scale, confluent-kafka.

    python -m bench.client.consume --size 100 --records 200000

Every client reads the same topic of one partition from its beginning to its end, as objects, with its own defaults but
for the size of a poll, which is 500 records for all. The topic is filled by confluent-kafka in batches of 16 KB. A
figure is records a second from the first poll to the last record, and microseconds of CPU time of this process for
each record. Clients take turns, and the median of the rounds is told.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.stage import Sizes, Stage

POLL_RECORDS = 500
BATCH_BYTES = 16_384


async def ottla_poll(bootstrap: str, topic: str, count: int) -> None:
    from ottla.client.consumer.consumer import Consumer
    from ottla.client.record import TopicPartition

    async with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        seen = 0
        while seen < count:
            seen += len(await consumer.poll())


async def ottla_iterate(bootstrap: str, topic: str, count: int) -> None:
    from ottla.client.consumer.consumer import Consumer
    from ottla.client.record import TopicPartition

    async with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        seen = 0
        async for _ in consumer:
            seen += 1
            if seen == count:
                break


async def ottla_arrow(bootstrap: str, topic: str, count: int) -> None:
    from ottla.client.consumer.consumer import Consumer
    from ottla.client.record import TopicPartition

    async with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        seen = 0
        while seen < count:
            batch = await consumer.poll_arrow()
            seen += 0 if batch is None else batch.num_rows


async def aiokafka_getmany(bootstrap: str, topic: str, count: int) -> None:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
    )
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, 0)])
        seen = 0
        while seen < count:
            found = await consumer.getmany(timeout_ms=1000, max_records=POLL_RECORDS)
            seen += sum(map(len, found.values()))
    finally:
        await consumer.stop()


async def kafka_python_poll(bootstrap: str, topic: str, count: int) -> None:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=POLL_RECORDS,
    )
    consumer.assign([TopicPartition(topic, 0)])
    seen = 0
    while seen < count:
        seen += sum(map(len, consumer.poll(timeout_ms=1000).values()))
    consumer.close()


async def confluent_consume(bootstrap: str, topic: str, count: int) -> None:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    seen = 0
    while seen < count:
        # A message's fields are made into objects when they are asked for.
        seen += len(
            [(each.offset(), each.key(), each.value()) for each in consumer.consume(POLL_RECORDS, 1.0)]
        )
    consumer.close()


CLIENTS: dict[str, Callable[[str, str, int], Awaitable[None]]] = {
    "ottla": ottla_poll,
    "ottla-iterate": ottla_iterate,
    "ottla-arrow": ottla_arrow,
    "aiokafka": aiokafka_getmany,
    "kafka-python": kafka_python_poll,
    "confluent": confluent_consume,
}


def fill(bootstrap: str, topic: str, size: int, count: int) -> None:
    """Write the records that all are to read."""
    from confluent_kafka import Producer

    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 50, "batch.size": BATCH_BYTES, "log_level": 0}
    )
    for number in range(count):
        while True:
            try:
                producer.produce(topic, b"%08d" % number + b"x" * (size - 8), partition=0)
                break
            except BufferError:
                producer.poll(0.01)
    assert producer.flush(60) == 0


def run(client: str, bootstrap: str, topic: str, count: int, uvloop: bool) -> tuple[float, float]:
    """Records a second, and microseconds of CPU for each."""
    import uvloop as uv

    loop_factory = uv.new_event_loop if uvloop else None
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        # Whatever is made on first use.
        runner.run(CLIENTS[client](bootstrap, topic, 1000))  # type: ignore[arg-type]
        cpu, begin = time.process_time(), time.perf_counter()
        runner.run(CLIENTS[client](bootstrap, topic, count))  # type: ignore[arg-type]
        wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    return count / wall, cpu / count * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--size", type=int, action="append", help="bytes of a value; may be repeated")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--client", action="append", choices=CLIENTS)
    parser.add_argument("--product", default="ottla", choices=("ottla", "kafka"))
    parser.add_argument("--uvloop", action="store_true", help="run asyncio clients on uvloop")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as place,
        Stage(options.product, Sizes(), Path(place)).server() as server,
    ):
        measure(options, server.bootstrap)


def measure(options: argparse.Namespace, bootstrap: str) -> None:
    clients = options.client or list(CLIENTS)
    for size in options.size or [100, 1000]:
        topic = f"consume-{size}"
        fill(bootstrap, topic, size, options.records)
        found: dict[str, list[tuple[float, float]]] = {client: [] for client in clients}
        for _ in range(options.rounds):
            for client in clients:
                found[client].append(run(client, bootstrap, topic, options.records, options.uvloop))
        for client, figures in found.items():
            rate = statistics.median(each[0] for each in figures)
            cpu = statistics.median(each[1] for each in figures)
            print(f"{size:>6} B  {client:<14} {rate:>12,.0f} records/s  {cpu:>8.2f} µs CPU a record")


if __name__ == "__main__":
    main()
