"""What every workload has: a beginning, troubles of its own, and an end."""

from typing import TYPE_CHECKING

from ottla.sim.cluster.fleet import Client, Fleet

if TYPE_CHECKING:
    import asyncio

LOG = "log"  # where producers write
OUT = "out"  # where transactions write
PARTITIONS = 2


class Workload:
    """Work of one kind, in one process or in several, one life after the other."""

    name = ""

    def __init__(self, fleet: Fleet, names: tuple[str, ...]) -> None:
        self.fleet = fleet
        self.names = names
        self.is_enough = False  # begin nothing new
        self.running: dict[str, Client] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self) -> None:
        """Begin, in every process."""
        for name in self.names:
            self.revive(name)

    def revive(self, name: str) -> None:
        """Begin a life of one process, unless it lives."""
        if name in self.running:
            return
        client = self.running[name] = self.fleet.client(name)
        self._tasks[name] = client.begin(self.live(client))

    def crash(self, name: str) -> None:
        """End a process without a word."""
        client = self.running.pop(name, None)
        if client is not None:
            client.note("dies")
            client.die()
            del self._tasks[name]

    async def live(self, client: Client) -> None:
        """What a process does, until it is enough or it dies; what it cannot do for now it tries again."""
        raise NotImplementedError

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do, now that it is enough and the cluster is well."""
        raise NotImplementedError

    @property
    def is_done(self) -> bool:
        """Whether every process has come to its end, which follows once it is enough."""
        return all(task.done() for task in self._tasks.values())
