"""Records on their way, and what became of them.

S1  Reading goes no faster than the producer takes records, and stops when one could not be written.
S2  The outcome of every record that was sent is known before the command ends.
"""

import argparse
import asyncio
import json
from contextlib import aclosing

from ottla.cli.connection import output_form
from ottla.cli.error import FAILED, OK, CommandError, complain
from ottla.cli.formats.entry import Entry, InputError
from ottla.cli.output.printer import JSON, TABLE
from ottla.cli.output.yaml import yaml
from ottla.cli.pace import Pace
from ottla.cli.perf.speed import Speed
from ottla.cli.produce.input import Defaults, entries
from ottla.cli.progress import Nothing, Progress
from ottla.client import Producer
from ottla.client.errors import BufferFull, ClientError
from ottla.client.producer.delivery import Delivery
from ottla.client.record import RecordMetadata


class Sending:
    """One run of `ottla produce`."""

    def __init__(self, options: argparse.Namespace, defaults: Defaults, progress: Progress | Nothing) -> None:
        self._options = options
        self._defaults = defaults
        self._progress = progress
        self._pace = Pace(options.rate) if options.rate else None
        self._form = output_form(options)
        self._speed = Speed()
        self._is_transactional = False
        self._failed = 0
        self._partitions: frozenset[int] = frozenset()
        self._first_error: ClientError | None = None
        self._cut_off = False
        self._task: asyncio.Task[int] | None = None

    async def run(self, bootstrap: str, settings: dict[str, object]) -> int:
        """Send everything, and wait until the outcome of each record is known."""
        self._task = asyncio.current_task()
        self._is_transactional = bool(settings.get("transactional.id"))
        try:
            async with Producer(bootstrap, settings) as producer:
                if self._is_transactional:
                    async with producer.transaction():
                        await self._send_all(producer)
                        if self._first_error is not None:
                            raise self._first_error
                else:
                    await self._send_all(producer)
        except asyncio.CancelledError:
            if self._cut_off:
                raise BrokenPipeError from None
            raise
        finally:
            self._progress.close()
        return self._outcome()

    def _outcome(self) -> int:
        error = self._first_error
        if error is None:
            return OK
        return complain(
            f"{self._failed} of {self._speed.records} records were not written: {error.args[0]}",
            hint=error.hint,
            exit_code=FAILED,
        )

    async def _send_all(self, producer: Producer) -> None:
        wrong: InputError | None = None
        try:
            async with aclosing(entries(self._options)) as batches:
                async for batch in batches:
                    for entry in batch:
                        await self._send(producer, self._defaults.complete(entry))
                        if self._first_error is not None:
                            break
                    if self._first_error is not None:
                        break
        except InputError as error:
            wrong = error
        await producer.flush()
        if wrong is not None:
            kept = self._speed.records and not self._is_transactional
            raise CommandError(str(wrong), "the records before it were written" if kept else "")

    async def _check_partition(self, producer: Producer, partition: int) -> None:
        """Refuse a partition that the topic does not have; a producer would wait for somebody to add it."""
        if partition in self._partitions:
            return
        topic = self._options.topic
        self._partitions = found = frozenset(await producer.partitions_for(topic))
        if partition not in found:
            hint = f"it has {len(found)}, counted from 0"
            raise CommandError(f"topic {topic} has no partition {partition}", hint)

    async def _send(self, producer: Producer, entry: Entry) -> None:
        if self._pace is not None:
            await self._pace.wait()
        value, key, headers, partition, timestamp = entry
        if partition is not None:
            await self._check_partition(producer, partition)
        while True:
            try:
                delivery = await producer.send(self._options.topic, value, key, partition, timestamp, headers)
                break
            except BufferFull:
                # Records that do not get through in time fail, and make room.
                continue
        delivery.add_done_callback(self._done)
        self._speed.records += 1
        self._speed.bytes += len(value or b"") + len(key or b"")
        if not self._speed.records & 63 and self._progress.is_due():
            self._progress.show(self._speed.records, self._speed.lately())

    def _done(self, delivery: Delivery) -> None:
        error = delivery.exception()
        if error is not None:
            self._failed += 1
            self._first_error = self._first_error or error
        elif self._options.verbose and not self._cut_off:
            try:
                self._report(delivery.metadata())
            except BrokenPipeError:
                self._cut_off = True
                if self._task is not None:
                    self._task.cancel()

    def _report(self, metadata: RecordMetadata) -> None:
        data = metadata._asdict()
        if self._form == TABLE:
            offset = metadata.offset if metadata.offset >= 0 else "?"
            print(f"{metadata.topic}[{metadata.partition}]@{offset}", flush=True)
        else:
            print(json.dumps(data) if self._form == JSON else yaml([data]).rstrip(), flush=True)
