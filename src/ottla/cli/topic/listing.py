"""`ottla topic list`."""

import argparse
import fnmatch

from ottla.cli.connection import output_form
from ottla.cli.error import OK
from ottla.cli.output.printer import TABLE, show, show_rows
from ottla.cli.running import run_admin
from ottla.client import Admin


def list_topics(options: argparse.Namespace) -> int:
    """Print topics, those that brokers keep for themselves only when asked for."""
    form = output_form(options)

    async def command(admin: Admin) -> int:
        topics = await admin.topics.list(internal=options.all)
        chosen = [
            each
            for each in topics.values()
            if not options.patterns or any(fnmatch.fnmatchcase(each.name, like) for like in options.patterns)
        ]
        if options.quiet and form == TABLE:
            print("".join(f"{each.name}\n" for each in chosen), end="")
            return OK
        rows = [
            {"name": each.name, "partitions": each.partitions, "internal": each.is_internal, "id": each.id}
            for each in chosen
        ]
        if options.quiet:
            show(form, [each.name for each in chosen])
            return OK
        columns = ("name", "partitions", "internal", "id") if options.all else ("name", "partitions", "id")
        show_rows(form, rows, columns, "no topics")
        return OK

    return run_admin(options, command)
