"""`ottla perf latency`: how long a record takes from a producer to a consumer."""

import argparse

from ottla.cli.bounds import bounds_of, partitions_of
from ottla.cli.connection import Connection, output_form
from ottla.cli.error import OK, CommandError
from ottla.cli.perf.latencies import Latencies
from ottla.cli.perf.producing import payloads
from ottla.cli.perf.report import report
from ottla.cli.perf.speed import Speed
from ottla.cli.progress import Progress
from ottla.cli.running import run
from ottla.client import Admin, Consumer, Producer
from ottla.client.record import TopicPartition
from ottla.world.clock import RealClock

PATIENCE_SECONDS = 30.0
# The first records pay for connections and for code that runs for the first time.
WARM_UP = 20


def measure_latency(options: argparse.Namespace) -> int:
    """Send records one by one, each when the last has come back, and print how long that took."""
    connection = Connection(options)
    return run(_measure(connection, options), fast=True)


async def _measure(connection: Connection, options: argparse.Namespace) -> int:
    async with Admin(connection.bootstrap, connection.settings("admin")) as admin:
        key = (await partitions_of(admin, [options.topic]))[0]
        end = (await bounds_of(admin, [key]))[key].end
    producing = connection.settings("producer", acks=options.acks, linger_ms=0)
    if options.acks == "1":
        producing.setdefault("enable.idempotence", "false")
    consuming = connection.settings("consumer", enable_auto_commit=False)
    round_trips, acknowledged, speed = Latencies(), Latencies(), Speed()
    progress = Progress(options.records)
    try:
        async with (
            Producer(connection.bootstrap, producing) as producer,
            Consumer(connection.bootstrap, consuming) as consumer,
        ):
            consumer.assign([key])
            consumer.seek(key, end)
            trip = _Trip(producer, consumer, key, options)
            for number in range(WARM_UP + options.records):
                if number == WARM_UP:
                    speed.begin()
                there, back = await trip.once(number)
                if number < WARM_UP:
                    continue
                acknowledged.add(there)
                round_trips.add(back)
                speed.records += 1
                speed.bytes += options.size + options.key_size
                if progress.is_due():
                    median = round_trips.percentile_us(50) / 1000
                    progress.show(speed.records, f"median {median:g} ms, {speed.lately()}")
    finally:
        progress.close()
        report(output_form(options), speed, {"latency": round_trips, "acknowledged": acknowledged})
    return OK


class _Trip:
    """The way of one record there and back."""

    def __init__(
        self, producer: Producer, consumer: Consumer, key: TopicPartition, options: argparse.Namespace
    ) -> None:
        self._producer = producer
        self._consumer = consumer
        self._key = key
        self._values = payloads(options.size)
        self._keys = payloads(options.key_size) if options.key_size else None
        self._clock = RealClock()

    async def once(self, number: int) -> tuple[float, float]:
        """Return how long it took until the record was acknowledged, and until it was read, in seconds."""
        place = number % len(self._values)
        started = self._clock.monotonic()
        delivery = await self._producer.send(
            self._key.topic,
            self._values[place],
            key=self._keys[place] if self._keys else None,
            partition=self._key.partition,
        )
        done_at: list[float] = []
        delivery.add_done_callback(lambda _: done_at.append(self._clock.monotonic()))
        records = await self._consumer.poll(timeout=PATIENCE_SECONDS)
        back = self._clock.monotonic() - started
        metadata = await delivery
        if not records or records[-1].offset != metadata.offset:
            raise CommandError(
                f"the record at {self._key} offset {metadata.offset} did not come back alone",
                "somebody else may write to the topic; use one of its own",
            )
        return done_at[0] - started, back
