"""`ottla dev`, `ottla server` and `ottla storage`: what runs a node and prepares its directories."""

from ottla.cli.syntax.kinds import port
from ottla.cli.syntax.parser import Commands, command, group, naming


def add_dev(commands: Commands, name: str, help: str) -> None:
    """Add `ottla dev`."""
    dev = command(
        commands,
        name,
        help,
        "ottla.cli.dev:run_dev",
        more="Topics are made on first use.",
        cluster=False,
    )
    data = dev.add_argument(
        "--data", metavar="DIR", default="ottla-data", help="where to keep data (%(default)s)"
    )
    naming(data, "file")
    dev.add_argument(
        "--port", metavar="N", type=port, default=9092,
        help="port for Kafka clients (%(default)s); the controller takes the next one, or any that is free",
    )  # fmt: skip
    dev.add_argument(
        "--flush",
        choices=("ack", "os"),
        default="ack",
        help="acknowledge a write once it is on disk, or once the system has it (%(default)s)",
    )
    dev.add_argument(
        "--metrics-port",
        metavar="N",
        type=port,
        default=9404,
        help="port of the node's metrics, health and readiness (%(default)s; none if it is taken)",
    )
    dev.add_argument(
        "--services-port",
        metavar="N",
        type=port,
        default=8080,
        help="port of the page that says what is there (%(default)s)",
    )
    dev.add_argument(
        "--no-services", action="store_true", help="run the broker alone, without the HTTP services"
    )


def add_server(commands: Commands, name: str, help: str) -> None:
    """Add `ottla server`."""
    server = command(
        commands,
        name,
        help,
        "ottla.cli.server:run_server",
        more="The storage must have been formatted.",
        cluster=False,
    )
    properties = server.add_argument(
        "properties", metavar="server.properties", nargs="?", help="the properties file"
    )
    naming(properties, "file")
    server.add_argument(
        "--override",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a setting that counts instead of the file's; may be repeated",
    )


def add_storage(commands: Commands, name: str, help: str) -> None:
    """Add `ottla storage`."""
    actions = group(commands, name, help)
    run = "ottla.cli.storage:run_storage"

    make = command(actions, "format", "prepare the data directories of a node", run, cluster=False)
    naming(
        make.add_argument("-c", "--config", metavar="FILE", required=True, help="the node's properties file"),
        "file",
    )
    make.add_argument(
        "-t", "--cluster-id", metavar="UUID", required=True,
        help="its cluster's id, such as `ottla storage random-uuid` prints; any text will do, as with Kafka",
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

    info = command(
        actions,
        "info",
        "say what the data directories hold: which cluster and node they belong to, and what is wrong with them",
        run,
        cluster=False,
    )
    naming(
        info.add_argument("-c", "--config", metavar="FILE", required=True, help="the node's properties file"),
        "file",
    )

    command(actions, "random-uuid", "print a new id, fit for a cluster or a directory", run, cluster=False)
