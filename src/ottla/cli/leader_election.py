"""`ottla leader-election`."""

import argparse

from ottla.cli.bounds import partitions_of
from ottla.cli.connection import output_form
from ottla.cli.error import FAILED, MISUSED, OK, CommandError
from ottla.cli.output.printer import show_rows
from ottla.cli.running import complain_of, run_admin
from ottla.cli.terminal import confirm
from ottla.client import Admin
from ottla.client.admin import ElectionType
from ottla.client.errors import SomeFailed


def elect_leaders(options: argparse.Namespace) -> int:
    """Elect leaders, and print who has a new one."""
    if bool(options.topics) == options.all:
        raise CommandError("leaders of which partitions?", "name topics, or say --all", exit_code=MISUSED)
    kind = ElectionType.UNCLEAN if options.unclean else ElectionType.PREFERRED

    async def command(admin: Admin) -> int:
        keys = None if options.all else await partitions_of(admin, options.topics, options.partitions)
        what = "take leaders that may lack records"
        if options.unclean and not await confirm(what, yes=options.yes):
            return FAILED
        failed: SomeFailed | None = None
        try:
            elected = await admin.partitions.elect(keys, kind)
        except SomeFailed as some:
            failed, elected = some, some.results
        rows = [
            {"topic": key.topic, "partition": key.partition, "elected": new}
            for key, new in sorted(elected.items())
            if new or not options.all
        ]
        show_rows(
            output_form(options),
            rows,
            ("topic", "partition", "elected"),
            nothing="" if failed else "every leader is the one it should be",
        )
        return OK if failed is None else complain_of(failed)

    return run_admin(options, command)
