"""Clients that write a record every few milliseconds, each in a process of its own, and remember when each was
acknowledged.

1  Settings are the client's own, but for the bootstrap servers: what is measured is what a user has.
2  The clock is the system's monotonic one, which all processes share.
3  The first acknowledgement after a moment counts only for a record that was sent after it: what a dead leader still
had
   in its socket says nothing of the next one.
"""

import asyncio
import contextlib
import itertools
import multiprocessing
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as Pipe
from typing import Any

from confluent_kafka import Producer

CLIENTS = ("librdkafka", "ottla")
INTERVAL_SECONDS = 0.005
VALUE = bytes(100)
_CONTEXT = multiprocessing.get_context("spawn")


@dataclass
class Record:
    """What became of one record."""

    sent_s: float
    done_s: float
    error: str | None


@dataclass
class Writer:
    """One client at work; `records` are those that have been settled, once it has stopped."""

    client: str
    records: list[Record] = field(default_factory=list)

    @property
    def errors(self) -> list[str]:
        return [record.error for record in self.records if record.error is not None]

    def first_after(self, moment_s: float) -> float:
        """When the first of the records sent after a moment was acknowledged."""
        return min(
            record.done_s for record in self.records if record.error is None and record.sent_s >= moment_s
        )

    def longest_gap(self, from_s: float, to_s: float) -> float:
        """The longest time without an acknowledgement, between two moments."""
        done = sorted(record.done_s for record in self.records if record.error is None)
        within = [from_s, *(each for each in done if from_s < each < to_s), to_s]
        return max(later - earlier for earlier, later in itertools.pairwise(within))


class Writers:
    """All clients, at work on one partition."""

    def __init__(self, bootstrap: str, topic: str, clients: tuple[str, ...] = CLIENTS) -> None:
        self.writers = {client: Writer(client) for client in clients}
        self._stop = _CONTEXT.Event()
        self._newest = {client: _CONTEXT.Value("d", 0.0) for client in clients}
        self._pipes: dict[str, Pipe] = {}
        self._processes = []
        for client in clients:
            ours, theirs = _CONTEXT.Pipe()
            self._pipes[client] = ours
            self._processes.append(
                _CONTEXT.Process(
                    target=_RUN[client],
                    args=(bootstrap, topic, theirs, self._stop, self._newest[client]),
                    daemon=True,
                )
            )

    def wait_for_writes(self, since_s: float, seconds_max: float = 60) -> None:
        """Wait until every client has had a record acknowledged that it sent after this moment."""
        deadline = time.monotonic() + seconds_max
        while not all(newest.value >= since_s for newest in self._newest.values()):
            assert time.monotonic() < deadline, f"no writes within {seconds_max} s"
            time.sleep(0.005)

    def start(self) -> None:
        for process in self._processes:
            process.start()

    def stop(self) -> None:
        """Have all end once everything is settled, and take their reports."""
        self._stop.set()
        for client, pipe in self._pipes.items():
            assert pipe.poll(150), f"{client} does not come to an end"
            self.writers[client].records = [Record(*each) for each in pipe.recv()]
        for process in self._processes:
            process.join(10)

    def end(self) -> None:
        for process in self._processes:
            if process.is_alive():
                process.kill()


@contextlib.contextmanager
def writing(bootstrap: str, topic: str, clients: tuple[str, ...] = CLIENTS) -> Iterator[Writers]:
    """Writers at work; their records are there behind the block."""
    made = Writers(bootstrap, topic, clients)
    made.start()
    try:
        yield made
        made.stop()
    finally:
        made.end()


def _librdkafka(bootstrap: str, topic: str, pipe: Pipe, stop: Any, newest: Any) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    records: list[tuple[float, float, str | None]] = []

    def write() -> None:
        sent_s = time.monotonic()

        def done(error: object, _: object) -> None:
            records.append((sent_s, time.monotonic(), None if error is None else str(error)))
            if error is None:
                newest.value = max(newest.value, sent_s)

        producer.produce(topic, VALUE, partition=0, on_delivery=done)

    while not stop.is_set():
        write()
        producer.poll(INTERVAL_SECONDS)
    producer.flush(120)
    pipe.send(records)


def _ottla(bootstrap: str, topic: str, pipe: Pipe, stop: Any, newest: Any) -> None:
    asyncio.run(_write(bootstrap, topic, pipe, stop, newest))


async def _write(bootstrap: str, topic: str, pipe: Pipe, stop: Any, newest: Any) -> None:
    from ottla.client import Delivery
    from ottla.client import Producer as OwnProducer

    records: list[tuple[float, float, str | None]] = []
    async with OwnProducer(bootstrap) as producer:
        while not stop.is_set():
            sent_s = time.monotonic()

            def done(delivery: Delivery, sent_s: float = sent_s) -> None:
                error = delivery.exception()
                records.append((sent_s, time.monotonic(), None if error is None else repr(error)))
                if error is None:
                    newest.value = max(newest.value, sent_s)

            (await producer.send(topic, VALUE, partition=0)).add_done_callback(done)
            await asyncio.sleep(INTERVAL_SECONDS)
        await producer.flush()
    pipe.send(records)


_RUN = {"librdkafka": _librdkafka, "ottla": _ottla}
