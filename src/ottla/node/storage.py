"""The directories of a node: locked, checked to be its own, and loaded."""

from collections.abc import Callable, Iterator

from ottla.log.config import LogConfig
from ottla.log.directory import LogDirectory
from ottla.node.settings import Settings
from ottla.node.world import World


class StartError(Exception):
    """The node cannot start; `hint` says what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def make_directories(
    settings: Settings, world: World, failed: Callable[[LogDirectory, OSError], None]
) -> Iterator[LogDirectory]:
    """Lock every directory that the settings name, one after the other; each has to be let go again."""
    for path in sorted({world.disk.absolute(each) for each in settings.directories}):
        directory = LogDirectory(path, world.disk, world.entropy, world.report, failed)
        try:
            directory.open()
        except BlockingIOError:
            raise StartError(
                f"the data directory {path} is in use by another process",
                "stop that process, or choose another directory",
            ) from None
        yield directory


def check_identities(directories: list[LogDirectory], node_id: int) -> str:
    """Return the cluster that the directories belong to; StartError unless all are formatted, and for this node."""
    cluster_id = ""
    for directory in directories:
        identity = directory.identity
        if identity is None:
            raise StartError(
                f"the data directory {directory.path} has not been formatted",
                "ottla storage format --standalone --cluster-id $(ottla storage random-uuid) --config FILE",
            )
        if identity.node_id != node_id:
            raise StartError(
                f"{directory.path} belongs to node {identity.node_id}, and this is node {node_id}",
                f"set node.id={identity.node_id}, or use another directory",
            )
        if cluster_id and identity.cluster_id != cluster_id:
            raise StartError(
                f"{directory.path} belongs to cluster {identity.cluster_id}, the others to {cluster_id}",
                "log.dirs must all be of one cluster",
            )
        cluster_id = identity.cluster_id
    return cluster_id


def load_directories(directories: list[LogDirectory], world: World) -> None:
    """Find the logs, and check those that were not closed in order."""
    started = world.clock.monotonic()
    checked = 0
    for directory in directories:
        directory.load(lambda topic: LogConfig())
        checked += 0 if directory.was_clean else len(directory.logs)
    if checked:
        took_s = world.clock.monotonic() - started
        world.report(f"the last stop was not a clean one: {checked} logs were checked in {took_s:.1f} s")
