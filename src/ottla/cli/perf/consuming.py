"""`ottla perf consume`."""

import argparse

from ottla.cli.bounds import bounds_of, partitions_of, place, time_of
from ottla.cli.connection import Connection, output_form
from ottla.cli.error import OK, CommandError
from ottla.cli.perf.report import report
from ottla.cli.perf.speed import Speed
from ottla.cli.position import resolve
from ottla.cli.progress import Progress
from ottla.cli.running import run
from ottla.client import Admin, Consumer
from ottla.client.record import Record
from ottla.world.clock import RealClock

POLL_SECONDS = 0.2


def measure_consuming(options: argparse.Namespace) -> int:
    """Read records, and print throughput."""
    connection = Connection(options)
    return run(_measure(connection, options), fast=True)


async def _measure(connection: Connection, options: argparse.Namespace) -> int:
    begin = place("--from", options.begin)
    settings = connection.settings(
        "consumer",
        group_id=options.group,
        enable_auto_commit=False if options.group is None else None,
        auto_offset_reset="earliest",
    )
    async with Admin(connection.bootstrap, connection.settings("admin")) as admin:
        keys = await partitions_of(admin, [options.topic])
        bounds = await bounds_of(admin, keys, time_of(begin))
    starts = {key: resolve(begin, bounds[key]) for key in keys}
    wanted = options.records or sum(bounds[key].end - starts[key] for key in keys)
    speed = Speed()
    progress = Progress(wanted)
    try:
        async with Consumer(connection.bootstrap, settings) as consumer:
            if options.group is not None:
                await consumer.subscribe([options.topic])
            else:
                consumer.assign(keys)
                for key, start in starts.items():
                    consumer.seek(key, start)
            await _read(consumer, wanted, options.idle, speed, progress)
    finally:
        progress.close()
        report(output_form(options), speed)
    if not speed.records:
        raise CommandError(
            f"there was nothing to read in {options.topic}", "ottla perf produce writes something"
        )
    return OK


async def _read(consumer: Consumer, wanted: int, idle_ms: int, speed: Speed, progress: Progress) -> None:
    clock = RealClock()
    heard_at = clock.monotonic()
    is_assigned = False
    while speed.records < wanted and (clock.monotonic() - heard_at) * 1000 < idle_ms:
        if not is_assigned:
            # Joining a group is not measured; the first fetch is, since it may bring all there is.
            is_assigned = bool(consumer.assignment)
            speed.begin()
        records = await consumer.poll(timeout=POLL_SECONDS)
        if not records:
            continue
        heard_at = clock.monotonic()
        speed.records += len(records)
        speed.bytes += sum(map(_size, records))
        if progress.is_due():
            progress.show(speed.records, speed.lately())


def _size(record: Record) -> int:
    return (len(record.value) if record.value is not None else 0) + (
        len(record.key) if record.key is not None else 0
    )
