"""Reads as a member of a group, and commits what was printed.

G1  A record is committed only once it was written to stdout: one that was not is read again by whoever comes next.
G2  What was printed is committed every second, before partitions go to somebody else, and at the end, whatever ends it.
"""

import argparse
import asyncio
from collections.abc import Collection, Sequence

from ottla.cli.bounds import place
from ottla.cli.connection import Connection
from ottla.cli.consume.plan import topic_pattern
from ottla.cli.consume.tally import Tally
from ottla.cli.error import MISUSED, OK, CommandError
from ottla.cli.position import Anchor
from ottla.cli.stream import Outlet
from ottla.client import Consumer, RebalanceListener
from ottla.client.record import OffsetAndMetadata, Record, TopicPartition
from ottla.world.clock import RealClock

COMMIT_SECONDS = 1.0


def reset_of(options: argparse.Namespace) -> str:
    """Return where a group begins that has stored nothing; CommandError for options that are not for groups."""
    if options.partitions is not None:
        raise CommandError(
            "a group shares out its partitions itself, so --partitions cannot stand beside --group", exit_code=MISUSED
        )  # fmt: skip
    if options.until is not None:
        hint = "--exit stops at what is the end now"
        raise CommandError("--to cannot stand beside --group", hint, exit_code=MISUSED)
    begin = place("--from", options.begin or "stored")
    if begin.number or begin.anchor in (Anchor.OFFSET, Anchor.TIME):
        hint = f"ottla group reset {options.group} --to {options.begin}"
        raise CommandError(
            "a group begins where it has stopped, so --from takes start, end or stored", hint, exit_code=MISUSED
        )  # fmt: skip
    return "latest" if begin.anchor is Anchor.END else "earliest"


async def consume_group(
    connection: Connection, settings: dict[str, object], options: argparse.Namespace, tally: Tally
) -> int:
    """Print what the group has not read yet."""
    pattern = topic_pattern(options.topics) if options.regex else None
    async with Consumer(connection.bootstrap, settings) as consumer:
        ledger = Ledger(consumer, keeps=not options.no_commit)
        if pattern is not None:
            await consumer.subscribe(pattern=pattern, listener=ledger)
        else:
            await consumer.subscribe(options.topics, listener=ledger)
        try:
            with Outlet() as outlet:
                while not (tally.is_full or tally.is_idle or (options.exit and await ledger.is_at_end())):
                    records = await consumer.poll(timeout=tally.poll_ms / 1000, max_records=tally.records_max)
                    await _print(tally, records, outlet, ledger)
                    await ledger.commit_if_due()
        finally:
            await ledger.commit()
    return OK


async def _print(tally: Tally, records: Sequence[Record], outlet: Outlet, ledger: "Ledger") -> None:
    try:
        await tally.print(records, outlet)
    except asyncio.CancelledError:
        if outlet.is_idle:
            ledger.note(records)
        raise
    ledger.note(records)


class Ledger(RebalanceListener):
    """What was printed and not yet committed, and how far there is to go."""

    def __init__(self, consumer: Consumer, *, keeps: bool) -> None:
        self._consumer = consumer
        self._keeps = keeps
        self._printed: dict[TopicPartition, OffsetAndMetadata] = {}
        self._ends: dict[TopicPartition, int] = {}
        self._clock = RealClock()
        self._committed_at = self._clock.monotonic()

    def note(self, records: Sequence[Record]) -> None:
        """Take down that these were printed."""
        for record in records if self._keeps else ():
            self._printed[record.topic_partition] = OffsetAndMetadata(
                record.offset + 1, leader_epoch=record.leader_epoch
            )

    async def commit_if_due(self) -> None:
        """Commit, if that was not done for a while."""
        if self._clock.monotonic() - self._committed_at >= COMMIT_SECONDS:
            await self.commit()

    async def commit(self) -> None:
        """Commit what was printed."""
        self._committed_at = self._clock.monotonic()
        printed, self._printed = self._printed, {}
        if printed:
            await self._consumer.commit(printed)

    async def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Commit while the partitions are still ours."""
        await self.commit()
        for key in partitions:
            self._ends.pop(key, None)

    async def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        """Forget what cannot be committed any more; it will be read again."""
        for key in partitions:
            self._printed.pop(key, None)
            self._ends.pop(key, None)

    async def is_at_end(self) -> bool:
        """Say whether everything was read that lay in our partitions when we got them."""
        owned = list(self._consumer.assignment)
        new = [key for key in owned if key not in self._ends]
        if new:
            self._ends |= await self._consumer.end_offsets(new)
        for key in owned:
            if await self._consumer.position(key) < self._ends[key]:
                return False
        return bool(owned)
