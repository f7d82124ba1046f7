"""`ottla cluster`: the cluster as a whole."""

from ottla.cli.syntax.parser import Commands, command, group


def add_cluster(commands: Commands, name: str, help: str) -> None:
    """Add `ottla cluster`."""
    actions = group(commands, name, help)
    command(
        actions,
        "info",
        "show the cluster: its id, brokers, quorum, features and size",
        "ottla.cli.cluster:show_cluster",
    )
