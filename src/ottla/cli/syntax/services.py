"""`ottla services`: what runs the HTTP services."""

import argparse

from ottla.cli.syntax.parser import Commands, command, naming

_EXAMPLES = """\
  ottla services                                    all of them, for the cluster at localhost:9092
  ottla services index --port index=9000
  ottla services --bootstrap-server broker-1:9092 --override ottla.http.access.log=true
"""


def add_services(commands: Commands, name: str, help: str) -> None:
    """Add `ottla services`."""
    services = command(
        commands,
        name,
        help,
        "ottla.cli.services.command:run_services",
        more="ottla dev starts them by itself.",
        examples=_EXAMPLES,
    )
    services.add_argument("names", metavar="service", nargs="*", help="which to run (all)")
    services.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT,...",
        dest="bootstrap",
        default=argparse.SUPPRESS,
        help="the same as --bootstrap, by the name that Kafka's tools have for it",
    )
    services.add_argument(
        "--port",
        metavar="NAME=N",
        action="append",
        default=[],
        help="the port of a service; may be repeated",
    )
    naming(
        services.add_argument("-c", "--config", metavar="FILE", help="a properties file with their settings"),
        "file",
    )
    services.add_argument(
        "--override",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a setting that counts instead of the file's; may be repeated",
    )
    services.add_argument(
        "--parent",
        metavar="PID",
        type=int,
        help="end when this process does, which is the one that started it",
    )
