"""`ottla server`: run a node as a Kafka properties file says."""

import argparse
import sys
from collections.abc import Callable

from ottla import __version__
from ottla.cli.error import MISUSED, CommandError
from ottla.node.node import Node
from ottla.node.properties import PropertiesError, parse_properties
from ottla.node.server import run
from ottla.node.settings import Settings
from ottla.node.storage import StartError
from ottla.world.disk import RealDisk


def run_server(options: argparse.Namespace) -> int:
    """Read the settings, warn of those without effect, and serve until told to stop."""
    properties = read_properties(options.properties) if options.properties else {}
    settings = Settings.from_properties(properties | overrides(options.override))
    warn(settings)
    return serve(settings, announce)


def serve(settings: Settings, ready: Callable[[Node], None]) -> int:
    """Run a node until it is told to stop; CommandError says why it cannot start."""
    try:
        return run(settings, ready)
    except StartError as error:
        raise CommandError(str(error), error.hint) from None


def announce(node: Node) -> None:
    """One line to say that the node serves, and where."""
    places = ", ".join(str(each) for each in node.endpoints)
    print(
        f"Ottla {__version__}, node {node.settings.node_id}, cluster {node.cluster_id}: {places}", flush=True
    )


def read_properties(path: str) -> dict[str, str]:
    """The pairs of a properties file; CommandError when it is none."""
    try:
        return parse_properties(RealDisk().read_bytes(path))
    except FileNotFoundError:
        raise CommandError(f"there is no file {path}", "ottla dev needs no file", exit_code=MISUSED) from None
    except PropertiesError as error:
        raise CommandError(f"{path}: {error}", exit_code=MISUSED) from None


def overrides(pairs: list[str]) -> dict[str, str]:
    """The pairs behind `--override key=value`."""
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise CommandError(
                f"--override {pair} is not key=value", "--override num.partitions=3", exit_code=MISUSED
            )
        found[name.strip()] = value.strip()
    return found


def warn(settings: Settings) -> None:
    """One line on stderr for each setting that has no effect."""
    for warning in settings.warnings:
        print(f"warning: {warning}", file=sys.stderr)
