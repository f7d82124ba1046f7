"""`ottla topic create`, `alter` and `add-partitions`."""

import argparse
from typing import Any

from ottla.cli.connection import output_form, pairs
from ottla.cli.error import MISUSED, OK, CommandError
from ottla.cli.output.printer import remark, show_rows
from ottla.cli.running import complain_of, run_admin
from ottla.client import Admin
from ottla.client.admin.configs import Resource
from ottla.client.errors import ClientError, Refused, SomeFailed
from ottla.wire.errors import ErrorCode


def create_topics(options: argparse.Namespace) -> int:
    """Make topics, and print what was made."""
    configs = pairs("--config", options.config)

    async def command(admin: Admin) -> int:
        some: SomeFailed | None = None
        try:
            made = await admin.topics.create(
                options.topics,
                partitions=options.partitions or -1,
                replication_factor=options.replication or -1,
                configs=configs,
                validate_only=options.dry_run,
            )
        except SomeFailed as failed:
            some, made = failed, failed.results
        except Refused as error:
            some, made = SomeFailed({options.topics[0]: error}, {}), {}
        rows: list[dict[str, Any]] = [
            {
                "name": each.name,
                "partitions": each.partitions,
                "replication": each.replication_factor,
                "id": each.id,
                "status": "possible" if options.dry_run else "made",
            }
            for each in made.values()
        ]
        errors = {}
        for name, refusal in (some.errors if some is not None else {}).items():
            if options.if_not_exists and _is(refusal, ErrorCode.TOPIC_ALREADY_EXISTS):
                rows.append({"name": name, "status": "was there"})
            else:
                errors[name] = refusal
        if rows:
            show_rows(output_form(options), rows, ("name", "partitions", "replication", "status"))
        return complain_of(SomeFailed(errors, made)) if errors else OK

    return run_admin(options, command)


def alter_topics(options: argparse.Namespace) -> int:
    """Change settings of topics."""
    changes: dict[str, object] = {**dict.fromkeys(options.unset), **pairs("--config", options.config)}
    if not changes:
        hint = f"ottla topic alter {options.topics[0]} --config retention.ms=86400000"
        raise CommandError("nothing to change was named", hint, exit_code=MISUSED)

    async def command(admin: Admin) -> int:
        changed = {Resource.topic(name): changes for name in options.topics}
        await admin.configs.alter(changed, validate_only=options.dry_run)
        return OK

    return run_admin(options, command)


def add_partitions(options: argparse.Namespace) -> int:
    """Give topics more partitions."""

    async def command(admin: Admin) -> int:
        described = await admin.topics.describe(options.topics)
        counts = {
            name: options.total or len(described[name].partitions) + options.add for name in options.topics
        }
        await admin.topics.add_partitions(counts, validate_only=options.dry_run)
        for name, count in counts.items():
            remark(f"{name}: {count} partitions" + (" would be possible" if options.dry_run else ""))
        return OK

    return run_admin(options, command)


def _is(error: ClientError, code: ErrorCode) -> bool:
    return isinstance(error, Refused) and error.code is code
