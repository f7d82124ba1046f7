"""One machine of a simulated cluster: a disk that stays, and on it one life of a node after another.

DOWN --start()--> STARTING --> SERVING --kill(), lose_power(), stop()--> DOWN
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ottla.node.node import Node
from ottla.node.settings import Settings
from ottla.node.storage import StartError
from ottla.node.world import World
from ottla.quorum.storage import Format, format_storage
from ottla.sim.cluster.clock import SimClock
from ottla.sim.cluster.disk import SimDisk
from ottla.sim.cluster.fabric import Fabric
from ottla.sim.cluster.network import SimNetwork
from ottla.sim.cluster.worker import SimWorker
from ottla.sim.loop import Process, Timeline
from ottla.world.entropy import Entropy, SeededEntropy

if TYPE_CHECKING:
    import asyncio

BROKER_PORT = 9092
CONTROLLER_PORT = 9093
_CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
_DIRECTORY = "/data"
_LIVES_MAX = 1000


def host_of(id: int) -> str:
    """The name of a node's machine."""
    return f"node-{id}"


class Machine:
    """A host. `note` hears what its node reports."""

    def __init__(
        self,
        id: int,
        timeline: Timeline,
        fabric: Fabric,
        seed: int,
        properties: Mapping[str, str],
        note: Callable[[str, str], None],
    ) -> None:
        self.id = id
        self.host = host_of(id)
        self.disk = SimDisk()
        self.life = 0
        self.process: Process | None = None
        self.node: Node | None = None
        self.is_serving = False
        self.gave_up: list[str] = []
        self.sync_s = (0.0005, 0.004)
        self.before_death: Callable[[], None] | None = None  # a last look at what it has
        self._timeline = timeline
        self._fabric = fabric
        self._seed = seed * _LIVES_MAX + id
        self.clock = SimClock(timeline)
        self._note = note
        self.settings = Settings.from_properties(
            {
                "node.id": str(id),
                "process.roles": "broker,controller",
                "listeners": f"PLAINTEXT://{self.host}:{BROKER_PORT},CONTROLLER://{self.host}:{CONTROLLER_PORT}",
                "controller.listener.names": "CONTROLLER",
                "log.dirs": _DIRECTORY,
                "ottla.metrics.listener": "",
                **properties,
            }
        )
        entropy = SeededEntropy(self._seed * 7 + 3)
        format_storage(self.disk, self.clock, entropy, Format(_CLUSTER_ID, id, [_DIRECTORY], _DIRECTORY))
        self.disk.sync_filesystem("/")

    @property
    def is_up(self) -> bool:
        """Whether a node runs here, or is about to."""
        return self.process is not None

    # A life

    def start(self) -> None:
        """Start a node on what the disk holds."""
        assert self.process is None, "one node a machine"
        self.life += 1
        self._fabric.power_back(self.host)
        process = self.process = Process(self._timeline, f"{self.host}/{self.life}")
        entropy = SeededEntropy(self._seed * _LIVES_MAX + self.life)
        world = World(
            self.clock,
            self.disk,
            SimNetwork(self._fabric, process, self.host),
            entropy,
            process,
            lambda name: self._worker(process, name, entropy),
            lambda text: None if process.is_dead else self._note(self.host, text),
        )
        self._note(self.host, f"starts, life {self.life}")
        process.create_task(self._run(process, world))

    def _worker(self, process: Process, name: str, entropy: Entropy) -> SimWorker:
        return SimWorker(process, entropy, lambda: self.sync_s)

    async def _run(self, process: Process, world: World) -> None:
        node = self.node = Node(self.settings, world, lambda reason: self._give_up(process, reason))
        try:
            await node.start()
        except StartError as error:
            if self.disk.refused:
                self._note(self.host, f"cannot start: {error}")
                process.call_soon(self._end, process)
            else:
                process.faults.append(f"{self.host} cannot start: {error}")
            return
        self.is_serving = True
        self._note(self.host, "serves")

    def _give_up(self, process: Process, reason: str) -> None:
        if process.is_dead:
            return
        self._note(self.host, f"gives up: {reason}")
        if self.disk.refused:  # as it may, where it could not write what it cannot do without
            process.call_soon(self._end, process)
        else:
            self.gave_up.append(reason)

    async def stop(self) -> None:
        """Stop in order. Called in the node's own process."""
        process, node = self.process, self.node
        assert process is not None
        assert node is not None
        await node.stop()
        self._note(self.host, "has stopped")
        process.call_soon(self._end, process)

    def stop_in_order(self) -> "asyncio.Task[None]":
        """Begin to stop in order."""
        assert self.process is not None
        self.is_serving = False
        task: asyncio.Task[None] = self.process.create_task(self.stop())
        return task

    def _end(self, process: Process) -> None:
        if self.process is process:
            self.disk = self.disk.after_death()
            self._bury()

    def kill(self) -> None:
        """Kill the process: the machine goes on, and says so to its peers."""
        if self.process is not None:
            self._look()
            self._note(self.host, "is killed")
            self.disk = self.disk.after_death()
            self._bury()

    def lose_power(self, entropy: Entropy) -> None:
        """Take the power away: what was not synced is gone, and nobody is told."""
        self._look()
        self._note(self.host, "loses power")
        self._fabric.power_lost(self.host)
        self.disk = self.disk.after_power_loss(entropy)
        self._bury()

    def _look(self) -> None:
        if self.before_death is not None:
            self.before_death()

    def _bury(self) -> None:
        process, self.process, self.node = self.process, None, None
        self.is_serving = False
        if process is not None:
            process.die()
            self._fabric.process_died(process)

    def pause(self) -> None:
        """Stop the process in its tracks."""
        if self.process is not None and not self.process.is_paused:
            self._note(self.host, "is paused")
            self.process.pause()

    def slow_down(self, sync_s: tuple[float, float], write_s: float) -> None:
        """Make the disk slow: a sync takes so long, and whoever writes stands still for `write_s`."""
        self.sync_s = sync_s

        def wrote() -> None:
            process = self.process
            if process is not None and not process.is_paused:
                process.pause()
                self._fabric.at(self._timeline.now + write_s, process.go_on)

        self.disk.wrote = wrote if write_s else None

    def go_on(self) -> None:
        """Let it go on."""
        if self.process is not None and self.process.is_paused:
            self._note(self.host, "goes on")
            self.process.go_on()
