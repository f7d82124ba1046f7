"""The `ottla` command: finds the subcommand, runs it, and turns errors into words.

Nothing but argparse is imported until a subcommand is chosen, so `ottla --help` answers at once.
"""

import argparse
import sys
from collections.abc import Sequence

from ottla import __version__
from ottla.cli.error import INTERRUPTED, MISUSED, CommandError, complain


def parser() -> argparse.ArgumentParser:
    """Every command and option, as `--help` and the reference show them."""
    root = argparse.ArgumentParser(
        prog="ottla",
        description="An event streaming platform that speaks Apache Kafka's protocol.",
        epilog="Kafka's own clients and tools work with it unchanged.",
    )
    root.add_argument("--version", action="version", version=f"ottla {__version__}", help="print the version")
    commands = root.add_subparsers(dest="command", metavar="command", required=True)
    _add_dev(commands)
    _add_server(commands)
    _add_storage(commands)
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = parser().parse_args(arguments)
    try:
        return _run(options)
    except CommandError as error:
        return complain(str(error), hint=error.hint, exit_code=error.exit_code)
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return complain(f"{where}{error.strerror or error}")


def _run(options: argparse.Namespace) -> int:
    from ottla.metadata.settings.error import SettingError

    try:
        if options.command == "dev":
            from ottla.cli.dev import run_dev

            return run_dev(options)
        if options.command == "server":
            from ottla.cli.server import run_server

            return run_server(options)
        from ottla.cli.storage import run_storage

        return run_storage(options)
    except SettingError as error:
        hint = error.hint or f"docs/reference/settings.md describes {error.name}"
        return complain(str(error), allowed=error.allowed, hint=hint, exit_code=MISUSED)


def _add_dev(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    dev = commands.add_parser(
        "dev",
        help="run one node on this machine, with nothing to configure",
        description="Run one node on this machine, with nothing to configure. Topics are made on first use.",
    )
    dev.add_argument("--data", metavar="DIR", default="ottla-data", help="where to keep data (%(default)s)")
    dev.add_argument(
        "--port", metavar="N", type=_port, default=9092, help="port for Kafka clients (%(default)s)"
    )
    dev.add_argument(
        "--flush",
        choices=("ack", "os"),
        default="ack",
        help="acknowledge a write once it is on disk, or once the system has it (%(default)s)",
    )
    dev.add_argument(
        "--metrics-port", metavar="N", type=_port, default=8080, help="port of the metrics page (%(default)s)"
    )


def _add_server(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    server = commands.add_parser(
        "server",
        help="run a node as a Kafka properties file says",
        description="Run a node as a Kafka properties file says. The storage must have been formatted.",
    )
    server.add_argument("properties", metavar="server.properties", nargs="?", help="the properties file")
    server.add_argument(
        "--override",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a setting that counts instead of the file's; may be repeated",
    )


def _add_storage(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    storage = commands.add_parser(
        "storage",
        help="prepare and inspect data directories",
        description="Prepare and inspect data directories.",
    )
    actions = storage.add_subparsers(dest="action", metavar="action", required=True)

    make = actions.add_parser(
        "format", help="prepare the data directories", description="Prepare the data directories of a node."
    )
    make.add_argument("-c", "--config", metavar="FILE", required=True, help="the node's properties file")
    make.add_argument(
        "-t", "--cluster-id", metavar="UUID", required=True, help="the cluster that it belongs to"
    )
    quorum = make.add_mutually_exclusive_group()
    quorum.add_argument("-s", "--standalone", action="store_true", help="make this node the only voter")
    quorum.add_argument(
        "-N", "--no-initial-controllers", action="store_true", help="leave the voters to be found later"
    )
    quorum.add_argument(
        "-I",
        "--initial-controllers",
        metavar="VOTERS",
        help="the first voters: id@host:port:directory-id, ...",
    )
    make.add_argument(
        "-g",
        "--ignore-formatted",
        action="store_true",
        help="pass over directories that are formatted already",
    )
    make.add_argument(
        "-r", "--release-version", metavar="VERSION", help="the Kafka release whose features to begin with"
    )
    make.add_argument(
        "-f",
        "--feature",
        metavar="NAME=LEVEL",
        action="append",
        default=[],
        help="the level of one feature; may be repeated",
    )

    info = actions.add_parser(
        "info",
        help="say what the data directories hold",
        description="Say which cluster and node the data directories belong to, and what is wrong with them.",
    )
    info.add_argument("-c", "--config", metavar="FILE", required=True, help="the node's properties file")

    actions.add_parser(
        "random-uuid",
        help="print a new id",
        description="Print a new id, fit for a cluster or a directory.",
    )


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text} is not a port: 0 to 65535, and 0 for any free one")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
