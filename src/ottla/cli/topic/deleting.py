"""`ottla topic delete` and `trim`."""

import argparse
import fnmatch
from collections.abc import Mapping, Sequence
from typing import Any

from ottla.cli.bounds import bounds_of, partitions_of, place, time_of
from ottla.cli.connection import output_form
from ottla.cli.error import FAILED, OK, CommandError
from ottla.cli.output.printer import remark, show_rows
from ottla.cli.output.table import Column
from ottla.cli.position import Bounds, Position, resolve, unbounded
from ottla.cli.running import run_admin
from ottla.cli.terminal import confirm
from ottla.client import Admin
from ottla.client.errors import Refused, SomeFailed
from ottla.client.record import TopicPartition
from ottla.wire.errors import ErrorCode


def delete_topics(options: argparse.Namespace) -> int:
    """Delete topics, once that is confirmed."""

    async def command(admin: Admin) -> int:
        names = list(dict.fromkeys(options.topics))
        if any(map(_is_pattern, names)):
            names = _matching(names, list(await admin.topics.list()))
            if not names:
                remark("no topic matches")
                return OK if options.if_exists else FAILED
        if options.if_exists or options.dry_run:
            there = await admin.topics.list(internal=True)
            absent = [name for name in names if name not in there]
            if absent and not options.if_exists:
                raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, about=f"topic {absent[0]}")
            for name in absent:
                remark(f"{name} is not there")
            names = [name for name in names if name in there]
        if options.dry_run:
            for name in names:
                remark(f"{name} would be deleted")
            return OK
        if not names:
            return OK
        if not await confirm(f"delete {', '.join(names)} with all records", yes=options.yes):
            return FAILED
        try:
            await admin.topics.delete(names)
        except SomeFailed as some:
            for name in some.results:
                remark(f"{name} is deleted")
            raise
        for name in names:
            remark(f"{name} is deleted")
        return OK

    return run_admin(options, command)


def _is_pattern(name: str) -> bool:
    return any(each in name for each in "*?[")


def _matching(names: Sequence[str], there: Sequence[str]) -> list[str]:
    """Return plain names, and the topics that patterns match; brokers' own topics have to be named."""
    found: dict[str, None] = {}
    for name in names:
        if _is_pattern(name):
            found |= dict.fromkeys(fnmatch.filter(there, name))
        else:
            found[name] = None
    return list(found)


def _refuse_behind_end(before: Position, bounds: Mapping[TopicPartition, Bounds]) -> None:
    """Refuse an offset behind the end of a partition, as a broker does: it would delete all, and is most likely
    mistyped.
    """
    for key, each in bounds.items():
        if unbounded(before, each) > each.end:
            raise CommandError(
                f"{key} ends at {each.end}, before {unbounded(before, each)} (OFFSET_OUT_OF_RANGE)",
                "--before end deletes all that is there; --partitions chooses partitions",
            )


def trim_topics(options: argparse.Namespace) -> int:
    """Delete the oldest records, once that is confirmed, and print where partitions begin from then on."""
    before = place("--before", options.before)

    async def command(admin: Admin) -> int:
        keys = await partitions_of(admin, options.topics, options.partitions)
        bounds = await bounds_of(admin, keys, time_of(before))
        _refuse_behind_end(before, bounds)
        targets = {key: resolve(before, bounds[key]) for key in keys}
        rows: list[dict[str, Any]] = [
            {
                "topic": key.topic,
                "partition": key.partition,
                "start_offset": bounds[key].start,
                "new_start_offset": targets[key],
                "deleted": targets[key] - bounds[key].start,
            }
            for key in keys
        ]
        doomed = {key: target for key, target in targets.items() if target > bounds[key].start}
        if doomed and not options.dry_run:
            count = sum(row["deleted"] for row in rows)
            what = f"delete {count:,} records of {', '.join(options.topics)}"
            if not await confirm(what, yes=options.yes):
                return FAILED
            begins = await admin.partitions.delete_records(doomed)
            for row, key in zip(rows, keys, strict=True):
                row["new_start_offset"] = begins.get(key, row["new_start_offset"])
        columns = (
            "topic",
            "partition",
            Column("start_offset", "start"),
            Column("new_start_offset", "new start"),
            "deleted",
        )
        show_rows(output_form(options), rows, columns)
        return OK

    return run_admin(options, command)
