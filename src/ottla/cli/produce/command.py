"""`ottla produce`."""

import argparse
import sys

from ottla.cli.connection import Connection
from ottla.cli.error import MISUSED, CommandError
from ottla.cli.produce.input import defaults_of, make_reader
from ottla.cli.produce.sending import Sending
from ottla.cli.progress import Nothing, Progress
from ottla.cli.running import run
from ottla.cli.terminal import is_terminal
from ottla.controller.names import invalid_name


def produce(options: argparse.Namespace) -> int:
    """Write every record that is given; fail when one could not be read or written."""
    if options.values and (options.files or options.whole):
        raise CommandError(
            "values on the command line cannot stand beside --file or --whole", exit_code=MISUSED
        )
    reason = invalid_name(options.topic)
    if reason is not None:
        raise CommandError(reason, exit_code=MISUSED)
    defaults = defaults_of(options)
    make_reader(options)  # what is wrong with the format is said before anybody is connected
    connection = Connection(options)
    settings = connection.settings("producer", acks=options.acks, compression_type=options.compression)
    if options.acks in ("0", "1"):
        settings.setdefault("enable.idempotence", "false")
    sending = Sending(options, defaults, _progress(options))
    return run(sending.run(connection.bootstrap, settings), fast=True)


def _progress(options: argparse.Namespace) -> Progress | Nothing:
    """Return a bar for somebody who looks on while files or pipes are read, and would see nothing else."""
    is_typed = not options.files and is_terminal(sys.stdin)
    if options.values or options.verbose or is_typed or not is_terminal(sys.stderr):
        return Nothing()
    return Progress(None)
