"""Reads partitions that were chosen by hand, each from its place to its end.

A record behind the end of its partition is not printed. When a partition has come to its end, it is paused, and when
all have, reading is over. What is followed is looked at again now and then, for topics and partitions that are new.
"""

import asyncio
import sys
from collections.abc import Sequence

from ottla.cli.connection import Connection
from ottla.cli.consume.plan import Span, Wish, spans_of
from ottla.cli.consume.tally import Tally
from ottla.cli.error import OK, CommandError
from ottla.cli.output.printer import remark
from ottla.cli.progress import Nothing, Progress
from ottla.cli.stream import Outlet
from ottla.cli.terminal import is_terminal
from ottla.client import Admin, Consumer
from ottla.client.record import Record, TopicPartition
from ottla.world.clock import RealClock
from ottla.world.shell import is_file

GROWTH_SECONDS = 10.0


async def consume_partitions(
    connection: Connection, settings: dict[str, object], wish: Wish, tally: Tally
) -> int:
    """Print what lies in the partitions that are wished for."""
    async with Admin(connection.bootstrap, connection.settings("admin")) as admin:
        spans = await spans_of(admin, wish)
        if not spans and wish.pattern is not None and wish.until is not None:
            raise CommandError("no topic matches", "ottla topic list shows them all")
        if not spans:
            remark("no topic matches yet")
        async with Consumer(connection.bootstrap, settings) as consumer:
            reading = _Reading(consumer, spans)
            await reading.begin(spans)
            tally.progress = _progress(spans)
            try:
                await _read(admin, wish, reading, tally)
            finally:
                tally.progress.close()
    return OK


def _progress(spans: dict[TopicPartition, Span]) -> Progress | Nothing:
    """Return a bar for somebody who looks on while a file is filled, and knows no better how far it is."""
    if (
        any(span.end is None for span in spans.values())
        or not is_file(sys.stdout)
        or not is_terminal(sys.stderr)
    ):
        return Nothing()
    return Progress(sum((span.end or 0) - span.start for span in spans.values()))


async def _read(admin: Admin, wish: Wish, reading: "_Reading", tally: Tally) -> None:
    clock = RealClock()
    looked_at = clock.monotonic()
    with Outlet() as outlet:
        while not (tally.is_full or tally.is_idle or await reading.is_over()):
            records = await reading.poll(tally.poll_ms, tally.records_max)
            await tally.print(records, outlet)
            if wish.until is None and clock.monotonic() - looked_at >= GROWTH_SECONDS:
                looked_at = clock.monotonic()
                await reading.begin(await spans_of(admin, wish, list(reading.spans)))


class _Reading:
    def __init__(self, consumer: Consumer, spans: dict[TopicPartition, Span]) -> None:
        self._consumer = consumer
        self.spans: dict[TopicPartition, Span] = {}
        self._open: set[TopicPartition] = set()
        self._ends = any(span.end is not None for span in spans.values())

    async def begin(self, spans: dict[TopicPartition, Span]) -> None:
        """Read these partitions, too."""
        if not spans:
            return
        self.spans |= spans
        self._consumer.assign(list(self.spans))
        for key, span in spans.items():
            self._consumer.seek(key, span.start)
            if span.end is None or span.start < span.end:
                self._open.add(key)
            else:
                self._consumer.pause([key])

    async def is_over(self) -> bool:
        """Say whether every partition has come to its end."""
        if not self._ends:
            return False
        for key in tuple(self._open):
            end = self.spans[key].end
            # What lies before the end may be nothing that is shown: markers, aborted or compacted records.
            if end is not None and await self._consumer.position(key) >= end:
                self._close(key)
        return not self._open

    def _close(self, key: TopicPartition) -> None:
        self._open.discard(key)
        self._consumer.pause([key])

    async def poll(self, timeout_ms: int, records_max: int) -> Sequence[Record]:
        """Return the next records that lie before the end of their partition."""
        if not self.spans:
            await asyncio.sleep(timeout_ms / 1000)
            return []
        records = await self._consumer.poll(timeout=timeout_ms / 1000, max_records=records_max)
        if not self._ends:
            return records
        return [each for each in records if self._is_wanted(each)]

    def _is_wanted(self, record: Record) -> bool:
        end = self.spans[record.topic_partition].end
        return end is None or record.offset < end
