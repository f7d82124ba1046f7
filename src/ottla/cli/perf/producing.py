"""`ottla perf produce`."""

import argparse
from functools import partial

from ottla.cli.connection import Connection, output_form
from ottla.cli.error import FAILED, OK, complain
from ottla.cli.pace import Pace
from ottla.cli.perf.latencies import Latencies
from ottla.cli.perf.report import report
from ottla.cli.perf.speed import Speed
from ottla.cli.progress import Progress
from ottla.cli.running import run
from ottla.client import ClientError, Delivery, Producer
from ottla.world.clock import RealClock
from ottla.world.entropy import SeededEntropy

# Values differ, so that compression is not flattered, and come round again, so that making them costs nothing.
VALUES = 256
SEED = 1


def measure_producing(options: argparse.Namespace) -> int:
    """Write records, and print throughput and latencies from `send` to the acknowledgement."""
    connection = Connection(options)
    settings = connection.settings("producer", acks=options.acks, compression_type=options.compression)
    if options.acks in ("0", "1"):
        settings.setdefault("enable.idempotence", "false")
    return run(Producing(options).run(connection.bootstrap, settings), fast=True)


def payloads(size: int, count: int = VALUES) -> list[bytes]:
    """Return values of printable letters, the same for everybody."""
    entropy = SeededEntropy(SEED)
    letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    block = bytes(letters[entropy.below(26)] for _ in range(min(size, 4096)))
    found = []
    for _ in range(count):
        turn = entropy.below(max(len(block), 1))
        found.append(((block[turn:] + block[:turn]) * (size // max(len(block), 1) + 1))[:size])
    return found


class Producing:
    """One measurement."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._clock = RealClock()
        self._speed = Speed()
        self._latencies = Latencies()
        self._failed = 0
        self._error: ClientError | None = None

    async def run(self, bootstrap: str, settings: dict[str, object]) -> int:
        """Send, wait for every outcome, and report."""
        progress = Progress(self._options.records)
        try:
            async with Producer(bootstrap, settings) as producer:
                # The first answers of a cluster are not what is measured.
                await producer.partitions_for(self._options.topic)
                self._speed.begin()
                await self._send_all(producer, progress)
                await producer.flush()
        finally:
            progress.close()
            report(output_form(self._options), self._speed, {"latency": self._latencies})
        if self._error is None:
            return OK
        return complain(
            f"{self._failed} records were not written: {self._error.args[0]}",
            hint=self._error.hint,
            exit_code=FAILED,
        )

    async def _send_all(self, producer: Producer, progress: Progress) -> None:
        values, keys = payloads(self._options.size), payloads(self._options.key_size)
        topic, now = self._options.topic, self._clock.monotonic
        pace = Pace(self._options.rate) if self._options.rate else None
        keyed = self._options.key_size > 0
        for number in range(self._options.records):
            if pace is not None:
                await pace.wait()
            place = number % VALUES
            started = now()
            delivery = await producer.send(topic, values[place], key=keys[place] if keyed else None)
            delivery.add_done_callback(partial(self._done, started))
            if not number & 63 and progress.is_due():
                progress.show(self._speed.records, self._speed.lately())
            if self._error is not None:
                return

    def _done(self, started: float, delivery: Delivery) -> None:
        error = delivery.exception()
        if error is not None:
            self._failed += 1
            self._error = self._error or error
            return
        self._latencies.add(self._clock.monotonic() - started)
        self._speed.records += 1
        self._speed.bytes += self._options.size + self._options.key_size
