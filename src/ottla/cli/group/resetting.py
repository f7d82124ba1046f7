"""`ottla group reset`."""

import argparse
from typing import Any

from ottla.cli.bounds import bounds_of, partitions_of, place, time_of
from ottla.cli.connection import output_form
from ottla.cli.error import FAILED, MISUSED, OK, CommandError
from ottla.cli.group.progress import kind_of, move, standings_of
from ottla.cli.output.printer import show_rows
from ottla.cli.output.table import Column
from ottla.cli.position import Anchor, Bounds, Position, resolve
from ottla.cli.running import run_admin
from ottla.cli.terminal import confirm
from ottla.client import Admin
from ottla.client.admin import GroupKind
from ottla.client.errors import ClientError
from ottla.client.record import TopicPartition


def reset_group(options: argparse.Namespace) -> int:
    """Move the offsets of a group, once that is confirmed, and print from where to where."""
    to = place("--to", options.to) if options.to is not None else None
    if to is not None and to.anchor is Anchor.STORED:
        raise CommandError("--to stored would leave the group where it is", exit_code=MISUSED)

    async def command(admin: Admin) -> int:
        kind = await kind_of(admin, options.group)
        found = await standings_of(admin, options.group, kind)
        committed = {key: each.offset for key, each in found.items()}
        keys = await _partitions(admin, options, committed)
        bounds = await bounds_of(admin, keys, time_of(to))
        rows: list[dict[str, Any]] = [
            {
                "topic": key.topic,
                "partition": key.partition,
                "committed": committed.get(key),
                "new": _target(key, to, options.shift, bounds[key], committed),
            }
            for key in keys
        ]
        if not options.dry_run:
            if not await confirm(f"move {len(rows)} offsets of group {options.group}", yes=options.yes):
                return FAILED
            offsets = {key: row["new"] for key, row in zip(keys, rows, strict=True)}
            await _move(admin, options.group, kind, offsets)
        columns = ("topic", "partition", Column("committed", "was"), Column("new", "now"))
        show_rows(output_form(options), rows, columns)
        return OK

    return run_admin(options, command)


async def _partitions(
    admin: Admin, options: argparse.Namespace, committed: dict[TopicPartition, int]
) -> list[TopicPartition]:
    if options.topics:
        return await partitions_of(admin, options.topics, options.partitions)
    keys = [
        key for key in sorted(committed) if options.partitions is None or key.partition in options.partitions
    ]
    if not keys:
        raise CommandError(
            f"group {options.group} has committed nothing that could be moved",
            "name the topics with --topic",
        )
    return keys


def _target(
    key: TopicPartition,
    to: Position | None,
    shift: int | None,
    bounds: Bounds,
    committed: dict[TopicPartition, int],
) -> int:
    if to is not None:
        return resolve(to, bounds)
    if key not in committed:
        hint = "--to says where it should begin"
        raise CommandError(f"the group has committed nothing in {key}, so there is nothing to shift", hint)
    return resolve(Position(Anchor.OFFSET, max(committed[key] + (shift or 0), 0)), bounds)


async def _move(admin: Admin, group: str, kind: GroupKind, offsets: dict[TopicPartition, int]) -> None:
    try:
        await move(admin, group, kind, offsets)
    except ClientError:
        # A group that is being read from refuses in words that do not say so.
        found = (await admin.groups.describe(group)).get(group)
        if found is not None and found.members:
            raise CommandError(
                f"group {group} has {len(found.members)} members, and its offsets cannot be moved under their feet",
                "stop them first",
            ) from None
        raise
