"""`ottla consume`."""

import argparse

from ottla.cli.connection import Connection
from ottla.cli.consume.group import consume_group, reset_of
from ottla.cli.consume.plan import wish_of
from ottla.cli.consume.printing import make_writer
from ottla.cli.consume.reading import consume_partitions
from ottla.cli.consume.tally import Tally
from ottla.cli.error import MISUSED, CommandError
from ottla.cli.running import run


def consume(options: argparse.Namespace) -> int:
    """Print records until something ends it: a count, a place, silence, or the user."""
    connection = Connection(options)
    tally = Tally(make_writer(options), options.count, options.idle)
    isolation = "read_committed" if options.read_committed else None
    if options.group is None:
        if options.no_commit:
            raise CommandError("--no-commit is for groups", "name one with --group", exit_code=MISUSED)
        settings = connection.settings(
            "consumer", isolation_level=isolation, enable_auto_commit=False, auto_offset_reset="earliest"
        )
        return run(consume_partitions(connection, settings, wish_of(options), tally), fast=True)
    reset = reset_of(options)
    settings = connection.settings(
        "consumer",
        group_id=options.group,
        isolation_level=isolation,
        enable_auto_commit=False,
        auto_offset_reset=reset,
    )
    return run(consume_group(connection, settings, options, tally), fast=True)
