"""`ottla server`: run a node as a Kafka properties file says."""

import argparse
import sys

from ottla.cli.main import MISUSED, CommandError
from ottla.node.properties import PropertiesError, parse_properties
from ottla.node.settings import Settings
from ottla.world.disk import RealDisk


def run_server(options: argparse.Namespace) -> int:
    """Read the settings, warn of those without effect, and serve until told to stop."""
    properties = read_properties(options.properties) if options.properties else {}
    settings = Settings.from_properties(properties | overrides(options.override))
    warn(settings)
    from ottla.node.server import run

    return run(settings)


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
