"""`ottla cluster`: the cluster as a whole."""

from ottla.cli.syntax.kinds import port
from ottla.cli.syntax.parser import Commands, command, group, naming


def add_cluster(commands: Commands, name: str, help: str) -> None:
    """Add `ottla cluster`."""
    actions = group(commands, name, help)
    command(
        actions,
        "info",
        "show the cluster: its id, brokers, quorum, features and size",
        "ottla.cli.cluster:show_cluster",
    )
    start = command(
        actions,
        "start",
        "run a cluster of several nodes on this machine, each a process of its own",
        "ottla.cli.cluster_start:start_cluster",
        more="The nodes take as many ports from --port on for clients, and as many above those for each other.",
        cluster=False,
    )
    start.add_argument(
        "--nodes", metavar="N", type=int, choices=range(1, 10), default=3, help="how many (%(default)s)"
    )
    data = start.add_argument(
        "--data", metavar="DIR", default="ottla-cluster", help="where to keep data (%(default)s)"
    )
    naming(data, "file")
    start.add_argument(
        "--port", metavar="N", type=port, default=9092, help="the first port for Kafka clients (%(default)s)"
    )
