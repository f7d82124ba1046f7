"""`ottla server`: run a node as a Kafka properties file says."""

import argparse
import sys
from collections.abc import Callable

from ottla import __version__
from ottla.cli.error import CommandError
from ottla.cli.properties import overrides, read_properties
from ottla.node.node import Node
from ottla.node.server import Beside, run
from ottla.node.settings import Settings
from ottla.node.storage import StartError


def run_server(options: argparse.Namespace) -> int:
    """Read the settings, warn of those without effect, and serve until told to stop."""
    properties = read_properties(options.properties) if options.properties else {}
    settings = Settings.from_properties(properties | overrides(options.override))
    warn(settings)
    return serve(settings, announce)


def serve(settings: Settings, ready: Callable[[Node], None], beside: Beside | None = None) -> int:
    """Run a node until it is told to stop; CommandError says why it cannot start."""
    try:
        return run(settings, ready, beside)
    except StartError as error:
        raise CommandError(str(error), error.hint) from None


def announce(node: Node) -> None:
    """One line to say that the node serves, and where."""
    places = ", ".join(str(each) for each in node.endpoints)
    print(
        f"Ottla {__version__}, node {node.settings.node_id}, cluster {node.cluster_id}: {places}", flush=True
    )


def warn(settings: Settings) -> None:
    """One line on stderr for each setting that has no effect."""
    for warning in settings.warnings:
        print(f"warning: {warning}", file=sys.stderr)
